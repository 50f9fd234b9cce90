//! Module input from a chat message: text that is a JSON object is the input, other text its arguments, and
//! each image, audio, video or document is put into the field that the input schema has for its kind. The
//! input is not validated here.

use axum::http::StatusCode;
use ir::adaptation::{Component, Ledger};
use ir::media::ForeignIds;
use ir::{ChatRequest, Dialect, Media, MediaKind, PartBody, Role};
use module::envelope::ErrorBody;
use module::input::{media_field, put_media};
use module::manifest::Modality;
use module::{Code, Module};
use serde_json::{Map, Value, json};
use wire::media::{ConversionContext, Locality};

use crate::request::check_json_values;
use crate::response::ApiError;

/// The input from the last user message.
pub(super) fn input_of(module: &Module, chat: &ChatRequest) -> Result<Value, ApiError> {
    let last = chat
        .messages
        .iter()
        .rev()
        .find(|message| message.role == Role::User);
    let Some(message) = last else {
        return Err(refused(Code::E1001, "a module requires a user message"));
    };
    let mut media = Vec::new();
    for part in &message.parts {
        match &part.body {
            PartBody::Text(_) => {}
            PartBody::Media(item) => media.push(item),
            _ => {
                return Err(refused(Code::E1001, "a module accepts only text and media"));
            }
        }
    }
    let text = message.joined_text();
    check_json_values(text.as_bytes())?;
    let mut input = match serde_json::from_str(&text) {
        Ok(Value::Object(input)) => input,
        // Media without text adds no argument.
        _ if text.is_empty() && !media.is_empty() => Map::new(),
        _ => {
            let text = json!(text);
            let arguments = [("$ARGUMENTS", text.clone()), ("query", text)];
            arguments
                .map(|(key, text)| (String::from(key), text))
                .into_iter()
                .collect()
        }
    };
    for item in media {
        put(module, &mut input, item)?;
    }
    Ok(Value::Object(input))
}

/// Puts one item into its field.
fn put(module: &Module, input: &mut Map<String, Value>, media: &Media) -> Result<(), ApiError> {
    let Some(kind) = kind_of(media) else {
        return Err(refused(
            Code::E1010,
            "the kind of media is neither declared nor detectable from the first bytes",
        ));
    };
    // Fails if the module accepts none of this kind, has no field for it, or has several.
    let field = media_field(module, kind).map_err(|reason| refused(Code::E4011, reason))?;
    let setting = ConversionContext {
        place: Locality::Server,
        aliases: &ForeignIds::default(),
    };
    let mut ledger = Ledger::new(Component::Adapter);
    let mut item = wire::media::encode(Dialect::Cognitive, media, &setting, &mut ledger)
        .map_err(|refusal| refused(Code::E1001, refusal.to_string()))?;
    // Vendor hints are not part of the input schema, which may be closed.
    if let Value::Object(item) = &mut item {
        item.retain(|key, _| !key.starts_with("x-"));
    }
    put_media(input, &field, item).map_err(|reason| refused(Code::E1001, reason))
}

fn kind_of(media: &Media) -> Option<Modality> {
    let sniffed = || media.mime_or_sniffed().map(|mime| MediaKind::of_mime(&mime));
    let kind = match media.kind {
        MediaKind::Other => sniffed()?,
        kind => kind,
    };
    match kind {
        MediaKind::Image => Some(Modality::Image),
        MediaKind::Audio => Some(Modality::Audio),
        MediaKind::Video => Some(Modality::Video),
        MediaKind::Document => Some(Modality::Document),
        MediaKind::Other => None,
    }
}

fn refused(code: Code, message: impl Into<String>) -> ApiError {
    ApiError::with_status(ErrorBody::new(code, message), StatusCode::BAD_REQUEST)
}
