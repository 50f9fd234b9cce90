//! A tool call: module and input are determined, confirmation is requested if necessary, and the module is
//! run. Only an unknown tool is a protocol error; everything else is a tool result.

use std::sync::Arc;

use module::envelope::ErrorBody;
use module::input::free_text;
use module::manifest::ResponseMode;
use module::{Code, Module};
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tenancy::Scope;

use super::builtin::{self, InfoArguments, RunArguments};
use super::confirm::{Confirmation, ConfirmationRequest, side_effects};
use super::progress::run_with_progress;
use super::result::{refused, result};
use super::view::VisibleModules;
use crate::call::Call;
use crate::idempotency::IdempotencyHeaders;
use crate::negotiate::{ModeSignals, RequestedMode};
use crate::request::{ExecuteBody, RequestOptions};
use crate::response::{ApiError, record};
use engine::run::OnDisconnect;

/// A module with the input and options of this run.
struct ToolInvocation {
    module: Arc<Module>,
    input: Value,
    model: Option<String>,
    backend: Option<String>,
}

pub(super) async fn call(
    view: &VisibleModules,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.clone().unwrap_or_default();
    let invocation = match request.name.as_ref() {
        builtin::LIST => return Ok(into_result(list(view)).into()),
        builtin::INFO => return Ok(into_result(info(view, arguments)).into()),
        builtin::RUN => parse_run(view, arguments),
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
    match invocation {
        Ok(invocation) => Ok(run(view, invocation, &request, context).await),
        Err(refusal) => Ok(refused(refusal).into()),
    }
}

fn into_result(answer: Result<Value, ApiError>) -> rmcp::model::CallToolResult {
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

/// The invocation described by the arguments of `cognitive_run`.
fn parse_run(view: &VisibleModules, arguments: Map<String, Value>) -> Result<ToolInvocation, ApiError> {
    let arguments: RunArguments = read(arguments)?;
    let module = view.find(&arguments.module)?.clone();
    let input = match (arguments.input, arguments.args) {
        (Some(input), None) => Value::Object(input),
        (None, Some(args)) => Value::Object(free_text(args)),
        (None, None) => json!({}),
        (Some(_), Some(_)) => {
            let error = ErrorBody::new(Code::E1001, "`input` and `args` exclude each other");
            return Err(ApiError::new(error));
        }
    };
    if let Some(provider) = &arguments.provider {
        let fleet = view.gateway.engine().fleet();
        let known = fleet
            .candidates()
            .iter()
            .any(|candidate| candidate.name == *provider);
        if !known {
            let error = ErrorBody::new(Code::E1004, format!("unknown back-end `{provider}`"));
            return Err(ApiError::new(
                error.suggest("omit `provider` to let the server choose"),
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
    view: &VisibleModules,
    invocation: ToolInvocation,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let powers = side_effects(&invocation.module, &view.modules);
    if !powers.is_empty() && view.gateway.settings().mcp_confirm {
        let question = ConfirmationRequest {
            module: invocation.module.name(),
            input: &invocation.input,
            powers: &powers,
        };
        match question.ask(request, context).await {
            Confirmation::Approved => {}
            Confirmation::Declined(refusal) => return refused(refusal).into(),
            Confirmation::Pending(answer) => return answer.into(),
        }
    }
    match begin(view, invocation, context).await {
        Ok(response) => response,
        Err(refusal) => refused(refusal).into(),
    }
}

async fn begin(
    view: &VisibleModules,
    invocation: ToolInvocation,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ApiError> {
    // A client that requests progress gets it from a stream, if the module supports streaming.
    let wants_progress = context.meta.get_progress_token().is_some();
    let streams = invocation.module.manifest.response.mode != ResponseMode::Sync;
    let traceparent = context.meta.0.get("traceparent").and_then(Value::as_str);
    let options = RequestOptions {
        on_disconnect: OnDisconnect::Cancel,
        progress: Some(wants_progress),
        trace: traceparent.and_then(|text| text.parse().ok()),
        model: invocation.model,
        backend: invocation.backend,
        ..RequestOptions::default()
    };
    let call = Call {
        client: view.client.clone(),
        module: invocation.module,
        body: ExecuteBody {
            input: invocation.input,
            options,
            recovery: None,
        },
        signals: ModeSignals {
            accept: (wants_progress && streams).then_some(RequestedMode::Streaming),
            ..ModeSignals::default()
        },
        repeat: IdempotencyHeaders::default(),
    };
    let begun = call.begin(&view.gateway).await?;
    let run = begun.subscription.run();
    let tenant = &view.client.caller.tenant;
    let envelope = run_with_progress(view.gateway.engine(), tenant, begun.subscription, context).await?;
    drop(begun.stream_permit);
    Ok(result(envelope, Some(run)).into())
}
