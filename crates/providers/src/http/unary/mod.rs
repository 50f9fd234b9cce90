//! Unary operations: embeddings, images, transcriptions, speech. A request becomes one call, its response is
//! read completely within the limits, and every failure is one error. Dropping the future closes the
//! connection.

mod call;
mod image_extractor;
mod multipart;
mod response;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::port::UnaryResponse;
use ir::adaptation::{Component, Ledger};
use ir::{Error, ErrorKind, Operation, Payload, Phase, Request};
use secrecy::ExposeSecret;
use tokio::time::{Instant, timeout};

use self::call::{UnaryBody, encode};
use super::patch::patch;
use super::request::traced;
use super::request_body::RequestBody;
use super::{HttpInner, HttpOptions, models, transport_error, words};
use crate::redaction::redact_text;

pub(super) async fn answer(instance: Arc<HttpInner>, request: Arc<Request>) -> Result<UnaryResponse, Error> {
    let answered = ask(&instance, &request).await;
    answered.map_err(|mut error| {
        // A server may quote the API key in an error message, so the key is redacted.
        if let Some(key) = &instance.options.key {
            redact_text(&mut error.message, key.expose_secret(), "(key)");
        }
        error.operation = Some(request.operation());
        error
    })
}

async fn ask(instance: &HttpInner, request: &Request) -> Result<UnaryResponse, Error> {
    let (vendor, options) = (&instance.vendor, &instance.options);
    let deadline = Instant::now() + options.timeouts.total;
    let model = match bound_model(request, options)? {
        Some(model) => String::from(model),
        None => String::from(models::sole_model(instance).await?),
    };
    let Some((dialect, path)) = (vendor.whole)(&request.payload, &model) else {
        let message = format!(
            "{} does not support {}",
            vendor.kind,
            request.operation().as_str()
        );
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    };
    let mut ledger = Ledger::new(Component::Adapter);
    let mut draft = encode(dialect, &request.payload, model.clone(), &mut ledger)?;
    patch(&mut draft.body, request, instance, Some(&model), &mut ledger)?;
    if let Some(loss) = ledger.refused(request.degradation.unwrap_or_default()) {
        let message = format!("{}: {}", loss.pointer, loss.reason);
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    }
    let url = format!("{}{path}", options.base_url.trim_end_matches('/'));
    let mut headers = traced(instance.headers()?, request);
    let body = match draft.into_call()? {
        UnaryBody::Json(body) => RequestBody::Bytes(Bytes::from(body)),
        UnaryBody::Form(form) => RequestBody::Streamed(form.into_body(&mut headers)),
    };
    let outgoing = instance.client.post(&url, headers, body);
    let head_timeout =
        head_timeout(&request.payload, instance).min(deadline.saturating_duration_since(Instant::now()));
    let reply = match timeout(head_timeout, outgoing).await {
        Ok(answered) => answered?,
        Err(_) => {
            return Err(transport_error::idle_timeout(
                Phase::BeforeFirstByte,
                head_timeout,
            ));
        }
    };
    let reading = response::UnaryReader {
        dialect,
        idle: options.timeouts.idle,
        deadline,
        total: options.timeouts.total,
        raw: request.wants_raw(),
        store: &options.spill,
    };
    let mut answer = reading.read(reply, &request.payload).await?;
    if let Some(raw) = &mut answer.raw {
        words::hide(raw, options.key.as_ref());
    }
    let mut adaptations = ledger.into_entries();
    adaptations.append(&mut answer.adaptations);
    answer.adaptations = adaptations;
    Ok(answer)
}

/// The timeout of the response head. Images and transcriptions send nothing before they are complete.
fn head_timeout(payload: &Payload, instance: &HttpInner) -> Duration {
    let timeouts = &instance.options.timeouts;
    match payload {
        Payload::Image(_) | Payload::Transcription(_) => timeouts.total,
        _ => timeouts.first_byte,
    }
}

/// The configured model, else the requested one, else the default; `None` leaves the choice to the server. No
/// model answers under the name of another.
fn bound_model<'a>(request: &'a Request, options: &'a HttpOptions) -> Result<Option<&'a str>, Error> {
    let asked = request.model().filter(|model| !model.is_empty());
    if let (Some(own), Some(asked)) = (&options.model, asked)
        && own != asked
    {
        let message = format!("back-end {} serves only model {own}", options.name);
        return Err(Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message));
    }
    // The default model of an instance with chat is a chat model.
    let has_chat = options.operations.contains(&Operation::ChatCompletions);
    let usual = options.default_model.as_deref().filter(|_| !has_chat);
    Ok(options.model.as_deref().or(asked).or(usual))
}
