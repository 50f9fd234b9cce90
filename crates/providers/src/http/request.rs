//! Encodes a canonical request as an HTTP request. The URL comes from the configuration only; caller data
//! cannot change it.

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ir::adaptation::{Component, Ledger};
use ir::event::{ADAPTED, Warning};
use ir::{ChatRequest, Dialect, Error, ErrorKind, Feature, Phase, Request};
use secrecy::ExposeSecret;
use wire::chat;

use super::adapt::adapt;
use super::patch::patch;
use super::request_body::{RequestBody, insert_placeholders};
use super::{HttpInner, HttpOptions, VendorSpec, models};

/// A request that is ready to be sent.
#[derive(Debug)]
pub(super) struct PreparedRequest {
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: RequestBody,
    /// Losses of the encoding.
    pub(super) warnings: Vec<Warning>,
}

pub(super) async fn prepare(instance: &HttpInner, request: &Request) -> Result<PreparedRequest, Error> {
    let (vendor, options) = (&instance.vendor, &instance.options);
    let Some(asked) = request.as_chat() else {
        let message = format!(
            "{} does not support {}",
            vendor.kind,
            request.operation().as_str()
        );
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    };
    // The router does not select this instance for another model; if it is called anyway, no model may
    // answer under the name of another.
    if let (Some(own), Some(wanted)) = (&options.model, &asked.model)
        && own != wanted
        && !wanted.is_empty()
    {
        let message = format!("back-end {} serves only model {own}", options.name);
        return Err(Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message));
    }
    let model = match model(asked, options) {
        Some(model) => String::from(model),
        None => String::from(models::sole_model(instance).await?),
    };
    let (path, body, warnings) = encoded(asked, model, request, instance).await?;
    let base_url = options.base_url.trim_end_matches('/');
    let headers = traced(instance.headers()?, request);
    Ok(PreparedRequest {
        url: format!("{base_url}{path}"),
        headers,
        warnings,
        body,
    })
}

/// The path, the body and the losses of the request.
async fn encoded(
    asked: &ChatRequest,
    model: String,
    request: &Request,
    instance: &HttpInner,
) -> Result<(String, RequestBody, Vec<Warning>), Error> {
    let (vendor, options) = (&instance.vendor, &instance.options);
    let mut ledger = Ledger::new(Component::Adapter);
    let mut chat = adapt(asked, model, options, &mut ledger)?;
    let placeholders = insert_placeholders(&mut chat).await?;
    let mut body = chat::encode_request(vendor.dialect, &chat, &mut ledger)?;
    if vendor.dialect == Dialect::OpenaiChat {
        wire::openai_chat::ask_for_usage(&mut body);
        if options.features.contains(&Feature::Prefill) {
            wire::openai_chat::continue_last_message(&mut body);
        }
    }
    patch(&mut body, request, instance, chat.model.as_deref(), &mut ledger)?;
    let warnings = ledger
        .losses()
        .map(|loss| Warning::new(ADAPTED, format!("{}: {}", loss.pointer, loss.reason)));
    let text = serde_json::to_vec(&body).map_err(|error| Error::invalid_request(error.to_string()))?;
    let body = RequestBody::new(text, &placeholders);
    Ok(((vendor.path)(&chat), body, warnings.collect()))
}

/// Adds the caller's trace context, if present.
pub(super) fn traced(mut headers: HeaderMap, request: &Request) -> HeaderMap {
    if let (Some(trace_id), Some(span_id)) = (&request.meta.trace_id, &request.meta.span_id) {
        let context = format!("00-{trace_id}-{span_id}-01");
        // The trace context may come from a source other than a header and be invalid.
        if context.parse::<ir::TraceContext>().is_ok()
            && let Ok(value) = HeaderValue::from_str(&context)
        {
            headers.insert("traceparent", value);
        }
    }
    headers
}

/// The configured model, else the requested one, else the default.
pub(super) fn model<'a>(asked: &'a ChatRequest, options: &'a HttpOptions) -> Option<&'a str> {
    let named = [&options.model, &asked.model, &options.default_model];
    let mut named = named.into_iter().filter_map(|model| model.as_deref());
    named.find(|model| !model.is_empty())
}

pub(super) fn headers(vendor: &VendorSpec, options: &HttpOptions) -> Result<HeaderMap, Error> {
    let unusable = |kind, what: &str| {
        let message = format!(
            "{what} of back-end {} contains characters that are not allowed in a header",
            options.name
        );
        Error::new(kind, Phase::BeforeSend, message)
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let unusable = || unusable(ErrorKind::NotEnabled, &format!("the header `{name}`"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
        headers.insert(name, HeaderValue::from_str(value).map_err(|_| unusable())?);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in vendor.headers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = &options.key {
        let (name, before) = vendor.key_header;
        let mut value = HeaderValue::from_str(&format!("{before}{}", key.expose_secret()))
            .map_err(|_| unusable(ErrorKind::Auth, "the key"))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}
