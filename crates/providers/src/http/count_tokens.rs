//! Token count of a request by the vendor's count endpoint. Only some vendors have one; every failure returns
//! `None` and is not an error.

use std::sync::Arc;

use ir::adaptation::{Component, Ledger};
use ir::{Dialect, Request};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::HttpInner;
use super::body::collect;
use super::request::model;
use super::request_body::RequestBody;
use crate::limits::ERROR_BYTES_MAX;

/// Fields that the count endpoint accepts. It rejects all others.
const FIELDS: [&str; 6] = ["model", "messages", "system", "tools", "tool_choice", "thinking"];

pub(super) async fn count(instance: Arc<HttpInner>, request: Arc<Request>) -> Option<u64> {
    let (vendor, options) = (&instance.vendor, &instance.options);
    if vendor.dialect != Dialect::Anthropic {
        return None;
    }
    let mut chat = request.as_chat()?.clone();
    chat.model = Some(String::from(model(&chat, options)?));
    let mut ledger = Ledger::new(Component::Adapter);
    let mut body = wire::chat::encode_request(vendor.dialect, &chat, &mut ledger).ok()?;
    body.as_object_mut()?
        .retain(|key, _| FIELDS.contains(&key.as_str()));
    let url = format!(
        "{}/v1/messages/count_tokens",
        options.base_url.trim_end_matches('/')
    );
    let content = RequestBody::Bytes(body.to_string().into());
    let call = instance.client.post(&url, instance.headers().ok()?, content);
    let reply = timeout(options.timeouts.first_byte, call).await.ok()?.ok()?;
    if reply.status != 200 {
        return None;
    }
    let deadline = Instant::now() + options.timeouts.total;
    let body = collect(reply, ERROR_BYTES_MAX, options.timeouts.idle, deadline)
        .await
        .ok()?;
    serde_json::from_slice::<Value>(&body)
        .ok()?
        .get("input_tokens")?
        .as_u64()
}
