//! From a canonical request to the bytes that are posted. The address comes from the configuration alone;
//! nothing a caller says can move it.

use ir::adaptation::{Ledger, Party};
use ir::event::Warning;
use ir::{ChatRequest, Dialect, Error, ErrorKind, Feature, Message, Phase, Request, ResponseFormat, Role};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;
use wire::chat;

use super::{HttpOptions, Vendor};

/// A call that is ready to go.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// What the dialect could not say.
    pub(super) warnings: Vec<Warning>,
}

pub(super) fn prepare(vendor: &Vendor, options: &HttpOptions, request: &Request) -> Result<Prepared, Error> {
    let Some(asked) = request.as_chat() else {
        let message = format!("{} cannot do {} here", vendor.kind, request.operation().as_str());
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    };
    let mut ledger = Ledger::new(Party::Adapter);
    let chat = adapt(asked, options, &mut ledger)?;
    let mut body = chat::encode_request(vendor.dialect, &chat, &mut ledger)?;
    if vendor.dialect == Dialect::OpenaiChat {
        wire::openai_chat::ask_for_usage(&mut body);
    }
    let warnings = ledger
        .losses()
        .map(|loss| Warning::new("adapted", format!("{}: {}", loss.pointer, loss.reason)));
    Ok(Prepared {
        url: format!("{}{}", options.base_url.trim_end_matches('/'), vendor.path),
        headers: headers(vendor, options)?,
        warnings: warnings.collect(),
        body: serde_json::to_vec(&body).map_err(|error| Error::invalid_request(error.to_string()))?,
    })
}

/// The request as this instance can take it: its own model, and a schema by prompt where it cannot be held
/// to one.
fn adapt(asked: &ChatRequest, options: &HttpOptions, ledger: &mut Ledger) -> Result<ChatRequest, Error> {
    let mut chat = asked.clone();
    if let Some(model) = &options.model {
        chat.model = Some(model.clone());
    }
    if chat.model.as_deref().unwrap_or_default().is_empty() {
        let message = format!(
            "no model was named, and back-end {} has none of its own",
            options.name
        );
        return Err(Error::invalid_request(message));
    }
    let held = options.features.contains(&Feature::JsonSchema);
    if let Some(ResponseFormat::JsonSchema { schema, .. }) = chat.response_format.take_if(|_| !held) {
        let text = format!(
            "Answer with one JSON object and nothing around it. It must fit this JSON Schema:\n{schema}"
        );
        let at = chat
            .messages
            .iter()
            .take_while(|message| message.role == Role::System)
            .count();
        chat.messages.insert(at, Message::text(Role::System, text));
        ledger.dropped(
            "/payload/response_format",
            "the back-end cannot be held to a schema; it is in the prompt",
        );
    }
    Ok(chat)
}

fn headers(vendor: &Vendor, options: &HttpOptions) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in vendor.headers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = &options.key {
        let (name, before) = vendor.key_header;
        let mut value = HeaderValue::from_str(&format!("{before}{}", key.expose_secret())).map_err(|_| {
            let message = format!(
                "the key of back-end {} holds characters that no header can carry",
                options.name
            );
            Error::new(ErrorKind::Auth, Phase::BeforeSend, message)
        })?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}
