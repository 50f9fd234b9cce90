//! A call of a tool: which module is meant, with which input, whether a person has to agree, and the run.
//! Only a tool that does not exist is an error of the protocol; everything else is a result that says so.

use std::sync::Arc;

use module::envelope::ErrorBody;
use module::manifest::ResponseMode;
use module::{Code, Module};
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tenancy::Scope;

use super::builtin::{self, InfoArguments, RunArguments};
use super::confirm::{ConfirmationRequest, Confirmation, side_effects};
use super::progress::run_with_progress;
use super::result::{refused, result};
use super::view::VisibleModules;
use crate::call::Call;
use crate::negotiate::{ModeSignals, RequestedMode};
use crate::idempotency::IdempotencyHeaders;
use crate::response::{ApiError, record};
use crate::request::{ExecuteBody, RequestOptions};
use crate::state::Gateway;
use engine::run::OnDisconnect;

/// A module with everything that its caller said about this run.
struct ToolInvocation {
    module: Arc<Module>,
    input: Value,
    model: Option<String>,
    backend: Option<String>,
}

pub(super) async fn call(
    gateway: &Gateway,
    view: &VisibleModules,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.clone().unwrap_or_default();
    let order = match request.name.as_ref() {
        builtin::LIST => return Ok(told(list(view)).into()),
        builtin::INFO => return Ok(told(info(view, arguments)).into()),
        builtin::RUN => named(gateway, view, arguments),
        tool => {
            let module = view.by_tool(tool).cloned();
            let module =
                module.ok_or_else(|| ErrorData::invalid_params(format!("unknown tool: {tool}"), None))?;
            Ok(ToolInvocation {
                module,
                input: Value::Object(arguments),
                model: None,
                backend: None,
            })
        }
    };
    match order {
        Ok(order) => Ok(run(gateway, view, order, &request, context).await),
        Err(refusal) => Ok(refused(refusal).into()),
    }
}

fn told(answer: Result<Value, ApiError>) -> rmcp::model::CallToolResult {
    match answer {
        Ok(envelope) => result(envelope, None),
        Err(refusal) => refused(refusal),
    }
}

fn list(view: &VisibleModules) -> Result<Value, ApiError> {
    view.client.caller.require(Scope::Read)?;
    let listing = view.listing();
    let count = listing["modules"].as_array().map_or(0, Vec::len);
    Ok(record(&format!("{count} modules"), listing))
}

fn info(view: &VisibleModules, arguments: Map<String, Value>) -> Result<Value, ApiError> {
    view.client.caller.require(Scope::Read)?;
    let arguments: InfoArguments = read(arguments)?;
    let module = view.find(&arguments.module)?;
    Ok(record(
        &module.manifest.responsibility,
        view.description(&arguments.module)?,
    ))
}

/// The order that the arguments of `cognitive_run` give.
fn named(gateway: &Gateway, view: &VisibleModules, arguments: Map<String, Value>) -> Result<ToolInvocation, ApiError> {
    let arguments: RunArguments = read(arguments)?;
    let module = view.find(&arguments.module)?.clone();
    let input = match (arguments.input, arguments.args) {
        (Some(input), None) => Value::Object(input),
        (None, Some(args)) => json!({"$ARGUMENTS": args, "query": args}),
        (None, None) => json!({}),
        (Some(_), Some(_)) => {
            let error = ErrorBody::new(Code::E1001, "`input` and `args` exclude each other");
            return Err(ApiError::new(error));
        }
    };
    if let Some(provider) = &arguments.provider {
        let fleet = gateway.engine.fleet();
        let known = fleet
            .candidates()
            .iter()
            .any(|candidate| candidate.name == *provider);
        if !known {
            let error = ErrorBody::new(Code::E1004, format!("no back-end is called `{provider}`"));
            return Err(ApiError::new(
                error.suggest("leave `provider` out: the server chooses"),
            ));
        }
    }
    Ok(ToolInvocation {
        module,
        input,
        model: arguments.model,
        backend: arguments.provider,
    })
}

fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, ApiError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ApiError::new(ErrorBody::new(Code::E1001, format!("the arguments: {error}"))))
}

async fn run(
    gateway: &Gateway,
    view: &VisibleModules,
    order: ToolInvocation,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let powers = side_effects(&order.module, &view.modules);
    if !powers.is_empty() && gateway.settings().mcp_confirm {
        let question = ConfirmationRequest {
            module: order.module.name(),
            input: &order.input,
            powers: &powers,
        };
        match question.ask(request, context).await {
            Confirmation::Approved => {}
            Confirmation::Declined(refusal) => return refused(refusal).into(),
            Confirmation::Pending(answer) => return answer.into(),
        }
    }
    match begin(gateway, view, order, context).await {
        Ok(response) => response,
        Err(refusal) => refused(refusal).into(),
    }
}

async fn begin(
    gateway: &Gateway,
    view: &VisibleModules,
    order: ToolInvocation,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ApiError> {
    // Whoever wants to hear how far it is gets a stream to hear it from, where the module makes one.
    let hears = context.meta.get_progress_token().is_some();
    let streams = order.module.manifest.response.mode != ResponseMode::Sync;
    let traceparent = context.meta.0.get("traceparent").and_then(Value::as_str);
    let options = RequestOptions {
        on_disconnect: OnDisconnect::Cancel,
        progress: Some(hears),
        trace: traceparent.and_then(|text| text.parse().ok()),
        model: order.model,
        backend: order.backend,
        ..RequestOptions::default()
    };
    let call = Call {
        client: view.client.clone(),
        module: order.module,
        body: ExecuteBody {
            input: order.input,
            options,
            recovery: None,
        },
        signals: ModeSignals {
            accept: (hears && streams).then_some(RequestedMode::Streaming),
            ..ModeSignals::default()
        },
        repeat: IdempotencyHeaders::default(),
    };
    let begun = call.begin(gateway).await?;
    let run = begun.subscription.run();
    let tenant = &view.client.caller.tenant;
    let envelope = run_with_progress(&gateway.engine, tenant, begun.subscription, context).await?;
    drop(begun.seat);
    Ok(result(envelope, Some(run)).into())
}
