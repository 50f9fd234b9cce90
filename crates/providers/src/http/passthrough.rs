//! Passthrough of request bodies, if the caller uses this instance's dialect and the request needs no
//! adaptation. The body is sent byte for byte, except for the model name and the flag that requests usage.

use hyper::header::{HeaderName, HeaderValue};
use ir::{ChatRequest, Dialect, Request};
use serde_json::{Map, Value};

use super::adapt::must_adapt;
use super::request::{PreparedRequest, model, traced};
use super::request_body::RequestBody;
use super::{HttpInner, HttpOptions};
use engine::port::RawRequest;

/// A request in the caller's bytes.
#[derive(Debug)]
pub(super) struct PassthroughRequest {
    pub(super) prepared: PreparedRequest,
    /// The caller requested a stream.
    pub(super) streams: bool,
    /// The usage was requested by the gateway and not by the caller.
    pub(super) strip_usage_frame: bool,
}

/// `None`: the request has to be decoded and encoded.
pub(super) fn passthrough_request(
    instance: &HttpInner,
    request: &Request,
    verbatim: &RawRequest,
) -> Option<PassthroughRequest> {
    let (vendor, options) = (&instance.vendor, &instance.options);
    let chat = request.as_chat()?;
    if verbatim.dialect != vendor.dialect || !request.patches.is_empty() || must_adapt(chat, options) {
        return None;
    }
    let model = own_model(chat, options)?;
    let mut changes: Vec<(&str, String)> = Vec::new();
    let own = Value::from(model).to_string();
    if verbatim.field("model")? != own.as_bytes() {
        changes.push(("model", own));
    }
    let mut hides_usage = false;
    if vendor.dialect == Dialect::OpenaiChat && chat.streams() {
        let options = match verbatim.field("stream_options") {
            Some(options) => serde_json::from_slice(options).ok()?,
            None => Value::Null,
        };
        let mut options = match options {
            Value::Object(options) => options,
            Value::Null => Map::new(),
            _ => return None,
        };
        if options.get("include_usage") != Some(&Value::Bool(true)) {
            options.insert(String::from("include_usage"), Value::Bool(true));
            changes.push(("stream_options", Value::Object(options).to_string()));
            hides_usage = true;
        }
    }
    let body = match changes.is_empty() {
        true => verbatim.body.clone(),
        false => verbatim.fields.replace(&verbatim.body, &changes).into(),
    };
    let mut headers = traced(instance.headers().ok()?, request);
    for (name, value) in &verbatim.headers {
        let name = HeaderName::from_static(name);
        if let (false, Ok(value)) = (headers.contains_key(&name), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    let base_url = options.base_url.trim_end_matches('/');
    let prepared = PreparedRequest {
        url: format!("{base_url}{}", (vendor.path)(chat)),
        headers,
        body: RequestBody::Bytes(body),
        warnings: Vec::new(),
    };
    Some(PassthroughRequest {
        prepared,
        streams: chat.streams(),
        strip_usage_frame: hides_usage,
    })
}

/// The model of the instance, unless the caller requested another one.
fn own_model<'a>(chat: &'a ChatRequest, options: &'a HttpOptions) -> Option<&'a str> {
    match (&options.model, &chat.model) {
        (Some(own), Some(wanted)) if own != wanted && !wanted.is_empty() => None,
        _ => model(chat, options),
    }
}
