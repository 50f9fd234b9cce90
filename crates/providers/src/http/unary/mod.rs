//! Operations whose answer comes in one piece: embeddings, pictures, transcripts, speech. A request becomes
//! one call, its answer is read to the end within the limits, and every way to fail ends in one error.
//! Dropping the future hangs up.

mod call;
mod content;
mod multipart;
mod image_extractor;
mod response;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::port::UnaryResponse;
use ir::adaptation::{Ledger, Component};
use ir::{Error, ErrorKind, Operation, Payload, Phase, Request};
use secrecy::ExposeSecret;
use tokio::time::{Instant, timeout};

use self::call::{UnaryBody, encode};
use super::outgoing::Outgoing;
use super::patch::patch;
use super::request::traced;
use super::{HttpOptions, HttpInner, transport_error, models, words};

pub(super) async fn answer(instance: Arc<HttpInner>, request: Arc<Request>) -> Result<UnaryResponse, Error> {
    let answered = ask(&instance, &request).await;
    answered.map_err(|mut error| {
        // A server may quote the key that it refuses: nobody gets to read it.
        if let Some(key) = &instance.options.key {
            error.message = error.message.replace(key.expose_secret(), "(key)");
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
        let message = format!("{} cannot do {} here", vendor.kind, request.operation().as_str());
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
        UnaryBody::Json(body) => Outgoing::Whole(Bytes::from(body)),
        UnaryBody::Form(form) => Outgoing::Form(form.into_body(&mut headers)),
    };
    let outgoing = instance.post(&url, headers, body);
    let patience =
        patience(&request.payload, instance).min(deadline.saturating_duration_since(Instant::now()));
    let reply = match timeout(patience, outgoing).await {
        Ok(answered) => answered?,
        Err(_) => return Err(transport_error::idle_timeout(Phase::BeforeFirstByte, patience)),
    };
    let reading = response::UnaryReader {
        dialect,
        idle: options.timeouts.idle,
        deadline,
        total: options.timeouts.total,
        raw: request.wants_raw(),
        depot: &options.depot,
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

/// How long the server may be silent at first. A picture and a transcript are silent until they are done.
fn patience(payload: &Payload, instance: &HttpInner) -> Duration {
    let timeouts = &instance.options.timeouts;
    match payload {
        Payload::Image(_) | Payload::Transcription(_) => timeouts.total,
        _ => timeouts.first_byte,
    }
}

/// The instance's own model, else the one that was asked for, else the usual one; `None` leaves the choice to
/// the server. No model answers under the name of another.
fn bound_model<'a>(request: &'a Request, options: &'a HttpOptions) -> Result<Option<&'a str>, Error> {
    let asked = request.model().filter(|model| !model.is_empty());
    if let (Some(own), Some(asked)) = (&options.model, asked)
        && own != asked
    {
        let message = format!("back-end {} answers only with {own}", options.name);
        return Err(Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message));
    }
    // What an instance that talks usually talks with is a model for talking.
    let talks = options.operations.contains(&Operation::ChatCompletions);
    let usual = options.default_model.as_deref().filter(|_| !talks);
    Ok(options.model.as_deref().or(asked).or(usual))
}
