//! A module as a model: `module:NAME`. The last user message is its input, the text of the response is its
//! `data` as JSON, and the whole envelope is in the extension `cogn`. `module_stream` encodes streams,
//! `module_input` decodes the message parts.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use engine::port::EncodedEvent;
use engine::run::{OnDisconnect, envelope};
use ir::event::FinishReason;
use ir::{
    ChatRequest, ChatResponse, Dialect, Error, ErrorKind, GenerationOptions, Part, Phase, RunId, Usage,
};
use module::Module;
use module::manifest::{ChunkType, ResponseMode};
use serde_json::Value;

use super::call_metadata::CallMetadata;
use super::error::VendorError;
use super::module_input::input_of;
use super::module_stream::ModuleText;
use super::response_encoder::ResponseMeta;
use super::unary;
use crate::call::{Begun, Call};
use crate::idempotency::IdempotencyHeaders;
use crate::negotiate::{ModeSignals, RequestedMode};
use crate::request::{ExecuteBody, RequestOptions};
use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::trace;

/// A chat request to a module.
pub(super) struct ModuleChat {
    pub(super) client: ClientStreams,
    pub(super) module: Arc<Module>,
    pub(super) chat: ChatRequest,
    pub(super) streams: bool,
}

impl ModuleChat {
    /// `incremental` if text is streamed before the end.
    pub(super) async fn begin(
        self,
        gateway: &Gateway,
        headers: &HeaderMap,
        incremental: bool,
    ) -> Result<Begun, ApiError> {
        let input = input_of(&self.module, &self.chat)?;
        // A run that streams acquires its own permit.
        let needs_permit = self.streams && !incremental;
        let stream_permit = needs_permit
            .then(|| gateway.stream_permit(&self.client))
            .transpose()?;
        let repeat = IdempotencyHeaders::from_headers(headers)?;
        let call = Call {
            client: self.client,
            module: self.module,
            body: ExecuteBody {
                input,
                options: RequestOptions {
                    // With an idempotency key, the client can request the run again.
                    on_disconnect: match repeat.survives_disconnect() {
                        true => OnDisconnect::Keep,
                        false => OnDisconnect::Cancel,
                    },
                    chunk_type: incremental.then_some(ChunkType::Delta),
                    progress: Some(false),
                    trace: trace::of(headers),
                    generation: GenerationOptions::from(&self.chat.generation),
                    ..RequestOptions::default()
                },
                recovery: None,
            },
            signals: ModeSignals {
                header: Some(match incremental {
                    true => RequestedMode::Streaming,
                    false => RequestedMode::Sync,
                }),
                ..ModeSignals::default()
            },
            repeat,
        };
        let mut begun = call.begin(gateway).await?;
        begun.stream_permit = begun.stream_permit.or(stream_permit);
        Ok(begun)
    }

    pub(super) async fn answer(
        self,
        gateway: &Gateway,
        headers: &HeaderMap,
        meta: impl FnOnce(RunId) -> ResponseMeta + Send,
    ) -> Result<Response, VendorError> {
        let streams = self.streams;
        let incremental = streams && self.incremental(gateway);
        let begun = self.begin(gateway, headers, incremental).await?;
        let run = begun.subscription.run();
        let receipt = CallMetadata {
            run,
            backend: None,
            attempts: None,
            cost_usd: None,
        };
        let meta = meta(run);
        let response = match streams {
            true => {
                let text = ModuleText::new(begun.subscription, meta);
                text.response(gateway, begun.stream_permit).await
            }
            false => respond(&envelope_of(begun.subscription.terminal_event().await), meta),
        };
        let mut response = response.map_err(|failure| failure.with_metadata(receipt.clone()))?;
        receipt.write_headers(response.headers_mut());
        Ok(trace::write_run_header(response, trace::of(headers), run))
    }

    /// Whether text may be streamed before the end: not if the module is not streaming, and not if the gate
    /// may replace the answer by that of another back-end.
    fn incremental(&self, gateway: &Gateway) -> bool {
        self.module.manifest.response.mode != ResponseMode::Sync
            && !gateway.engine().may_rerun(self.module.name())
    }
}

pub(super) fn envelope_of(last: Result<EncodedEvent, engine::Error>) -> Value {
    match last {
        Ok(last) => envelope(&last),
        Err(error) => module::envelope::Envelope::failure(error.into_body()).into_value(),
    }
}

/// The response of a module as a model response, without the extension.
pub(super) fn outcome_of(envelope: &Value) -> Result<ChatResponse, Error> {
    match envelope["ok"] == true {
        true => Ok(ChatResponse {
            parts: vec![Part::text(envelope["data"].to_string())],
            finish_reason: Some(FinishReason::Stop),
            usage: usage_of(&envelope["_usage"]),
            ..ChatResponse::default()
        }),
        false => Err(error_of(envelope)),
    }
}

/// A failed module run as an error of a back-end.
pub(super) fn error_of(envelope: &Value) -> Error {
    let text = |pointer: &str| envelope.pointer(pointer).and_then(Value::as_str);
    let message = text("/error/message").unwrap_or_default();
    let error = Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message);
    let code = text("/error/code").unwrap_or_default();
    error.with_provider_code(Some(String::from(code)))
}

/// The response of a module as a model response.
fn response_of(envelope: &Value, dialect: Dialect) -> ChatResponse {
    ChatResponse {
        parts: vec![Part::text(envelope["data"].to_string())],
        ..extension(envelope, dialect)
    }
}

/// The same without text.
pub(super) fn extension(envelope: &Value, dialect: Dialect) -> ChatResponse {
    let mut response = ChatResponse {
        finish_reason: Some(FinishReason::Stop),
        usage: usage_of(&envelope["_usage"]),
        ..ChatResponse::default()
    };
    response.ext.set(dialect, "cogn", envelope.clone());
    response
}

fn usage_of(reported: &Value) -> Option<Usage> {
    let count = |keys: [&str; 2]| keys.iter().find_map(|key| reported.get(key)?.as_u64());
    let usage = Usage {
        input_tokens: count(["input_tokens", "prompt_tokens"]),
        output_tokens: count(["output_tokens", "completion_tokens"]),
        ..Usage::default()
    };
    (usage.input_tokens.is_some() || usage.output_tokens.is_some()).then_some(usage)
}

fn respond(envelope: &Value, mut meta: ResponseMeta) -> Result<Response, VendorError> {
    if envelope["ok"] != true {
        return Err(VendorError::of_envelope(envelope.clone()));
    }
    let mut response = response_of(envelope, meta.dialect);
    meta.complete(&mut response);
    unary::write(meta.dialect, &response)
}
