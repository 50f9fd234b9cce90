//! One chat request of a vendor client: parsed, resolved to a model or a module, and relayed or run. The
//! dialect is a value here; nothing else distinguishes the vendor paths.

use axum::extract::Request;
use axum::response::Response;
use engine::port::RawRequest;
use ir::{Dialect, Map};
use serde_json::{Value, json};
use tenancy::Scope;

use super::chat_call::{ChatCall, headers_of};
use super::error::VendorError;
use super::extensions::ValidateMode;
use super::list_models::model_missing;
use super::module_model::ModuleChat;
use super::response_encoder::ResponseMeta;
use super::resumable::Place;
use super::target::{Target, resolve};
use super::vendor_request::VendorRequest;
use crate::idempotency::IdempotencyHeaders;
use crate::request::read_call;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::trace;

pub(super) async fn chat(
    dialect: Dialect,
    gateway: &Gateway,
    request: Request,
) -> Result<Response, VendorError> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let client = ClientStreams::of(&parts.extensions)?;
    client.caller.require(Scope::Execute)?;
    if let Some(place) = Place::of(headers)? {
        return place.resume(dialect, gateway, &client).await;
    }
    let bytes = read_call(gateway, &client, headers, body).await?;
    let mut vendor_request = VendorRequest::parse(dialect, bytes, headers)?;
    let Some(model) = vendor_request.model().map(String::from) else {
        return Err(model_missing(gateway, &client.caller));
    };
    let target = resolve(gateway, &client.caller, &model)?;
    let (streams, shows_usage, extensions) = (
        vendor_request.streams(),
        vendor_request.includes_usage(),
        vendor_request.extensions,
    );
    let echo = match dialect {
        Dialect::OpenaiResponses => echo(&vendor_request),
        _ => Map::new(),
    };
    let several = several(&vendor_request, &target)?;
    let warnings = std::mem::take(&mut vendor_request.warnings);
    let created = gateway.engine().clock().now_ms() / 1_000;
    let meta = move |run| ResponseMeta {
        dialect,
        run,
        model,
        created,
        shows_usage,
        requested_choices: several,
        echo,
        warnings,
    };
    match target {
        Target::Module(module) => {
            let (_, chat) = vendor_request.into_parts()?;
            let call = ModuleChat {
                client,
                module,
                chat,
                streams,
            };
            call.answer(gateway, headers, meta).await
        }
        Target::Model { name, backend } => {
            vendor_request.rename(&name);
            let (bytes, chat) = vendor_request.into_parts()?;
            let question = ChatCall {
                client,
                dialect,
                chat,
                verbatim: RawRequest::new(dialect, bytes, headers_of(dialect, headers)),
                backend,
                extensions,
                streams,
                resumable: IdempotencyHeaders::from_headers(headers)?.resumable(),
                trace: trace::of(headers),
            };
            question.answer(gateway, meta).await
        }
    }
}

/// The number of requested choices, if more than one. Back-ends of the same dialect may return them; the
/// request is refused where only one choice is possible.
fn several(vendor_request: &VendorRequest, target: &Target) -> Result<Option<u64>, VendorError> {
    let requested = vendor_request
        .field("n")
        .and_then(Value::as_u64)
        .filter(|n| *n > 1);
    let Some(n) = requested.filter(|_| vendor_request.dialect == Dialect::OpenaiChat) else {
        return Ok(None);
    };
    match target {
        Target::Module(_) => Err(VendorError::invalid(format!(
            "`n` is {n}: a module returns one answer"
        ))),
        Target::Model { .. } if vendor_request.extensions.validate != ValidateMode::Off => Err(
            VendorError::invalid(format!("`n` is {n}: schema validation supports one answer")),
        ),
        Target::Model { .. } => Ok(Some(n)),
    }
}

/// Request fields that OpenAI responses repeat, with their defaults.
fn echo(vendor_request: &VendorRequest) -> Map {
    let usual = [
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("metadata", json!({})),
        ("parallel_tool_calls", json!(true)),
        ("previous_response_id", Value::Null),
        ("store", json!(false)),
        ("temperature", Value::Null),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("top_p", Value::Null),
    ];
    let repeated = |(key, usual): (&str, Value)| {
        let value = vendor_request
            .field(key)
            .filter(|value| !value.is_null())
            .cloned();
        (String::from(key), value.unwrap_or(usual))
    };
    usual.into_iter().map(repeated).collect()
}
