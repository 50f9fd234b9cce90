//! A module as a model: `module:NAME`. The last user message is its input, the answer's text is its `data`
//! as JSON, and the whole envelope stands beside it under `cogn`. How a stream is told is `module_stream`'s
//! business, what becomes of the message's parts `module_input`'s.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use engine::Subscription;
use engine::port::EncodedEvent;
use engine::run::{OnDisconnect, envelope};
use ir::event::FinishReason;
use ir::{ChatRequest, ChatResponse, Dialect, Error, ErrorKind, Part, Phase, RunId, TraceContext, Usage};
use module::Module;
use module::manifest::{ChunkType, ResponseMode};
use serde_json::Value;

use super::error::VendorError;
use super::module_input::input_of;
use super::module_stream::Telling;
use super::call_metadata::CallMetadata;
use super::response_encoder::ResponseMeta;
use super::unary;
use crate::call::Call;
use crate::negotiate::{ModeSignals, RequestedMode};
use crate::idempotency::IdempotencyHeaders;
use crate::response::ApiError;
use crate::request::{ExecuteBody, RequestOptions};
use crate::stream_limit::{ClientStreams, StreamPermit};
use crate::state::Gateway;
use crate::trace;

/// What is asked of a module.
pub(super) struct ModuleChat {
    pub(super) client: ClientStreams,
    pub(super) module: Arc<Module>,
    pub(super) chat: ChatRequest,
    pub(super) streams: bool,
}

/// A module that runs.
pub(super) struct StartedModuleRun {
    pub(super) run: RunId,
    pub(super) trace: Option<TraceContext>,
    pub(super) subscription: Subscription,
    pub(super) seat: Option<StreamPermit>,
}

impl ModuleChat {
    /// `grows` where words are told before the end.
    pub(super) async fn begin(
        self,
        gateway: &Gateway,
        headers: &HeaderMap,
        grows: bool,
    ) -> Result<StartedModuleRun, ApiError> {
        let input = input_of(&self.module, &self.chat)?;
        // A run that streams takes its own seat.
        let max = gateway.settings().streams_per_client_max;
        let sits = self.streams && !grows;
        let seat = sits.then(|| gateway.stream_limiter.acquire(&self.client, max)).transpose()?;
        let trace = trace::of(headers);
        let repeat = IdempotencyHeaders::from_headers(headers)?;
        let call = Call {
            client: self.client,
            module: self.module,
            body: ExecuteBody {
                input,
                options: RequestOptions {
                    // Whoever may come again under the same name finds the run.
                    on_disconnect: match repeat.survives_disconnect() {
                        true => OnDisconnect::Keep,
                        false => OnDisconnect::Cancel,
                    },
                    chunk_type: grows.then_some(ChunkType::Delta),
                    progress: Some(false),
                    trace,
                    ..RequestOptions::default()
                },
                recovery: None,
            },
            signals: ModeSignals {
                header: Some(match grows {
                    true => RequestedMode::Streaming,
                    false => RequestedMode::Sync,
                }),
                ..ModeSignals::default()
            },
            repeat,
        };
        let begun = call.begin(gateway).await?;
        Ok(StartedModuleRun {
            run: begun.subscription.run(),
            trace,
            subscription: begun.subscription,
            seat: begun.seat.or(seat),
        })
    }

    pub(super) async fn answer(
        self,
        gateway: &Gateway,
        headers: &HeaderMap,
        manner: impl FnOnce(RunId) -> ResponseMeta + Send,
    ) -> Result<Response, VendorError> {
        let streams = self.streams;
        let grows = streams && self.grows(gateway);
        let begun = self.begin(gateway, headers, grows).await?;
        let (run, trace) = (begun.run, begun.trace);
        let receipt = CallMetadata {
            run,
            backend: None,
            attempts: None,
            cost_usd: None,
        };
        let manner = manner(run);
        let response = match streams {
            true => {
                let telling = Telling::new(begun.subscription, manner);
                telling.response(gateway, begun.seat).await
            }
            false => written(&envelope_of(begun.subscription.terminal_event().await), manner),
        };
        let mut response = response.map_err(|failure| failure.with_metadata(receipt.clone()))?;
        receipt.write_headers(response.headers_mut());
        Ok(trace::write_run_header(response, trace, run))
    }

    /// Whether words of the answer may be shown before its end: not if the module says that it does not
    /// stream, nor if a gate may yet replace the whole answer by that of another back-end.
    fn grows(&self, gateway: &Gateway) -> bool {
        self.module.manifest.response.mode != ResponseMode::Sync
            && !gateway.engine.may_rerun(self.module.name())
    }
}

pub(super) fn envelope_of(last: Result<EncodedEvent, engine::Error>) -> Value {
    match last {
        Ok(last) => envelope(&last),
        Err(error) => module::envelope::Envelope::failure(error.into_body()).into_value(),
    }
}

/// The answer of a module as the answer of a model, with nothing beside it.
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

/// A module's failure as a back-end's.
pub(super) fn error_of(envelope: &Value) -> Error {
    let text = |pointer: &str| envelope.pointer(pointer).and_then(Value::as_str);
    let message = text("/error/message").unwrap_or_default();
    let error = Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message);
    let code = text("/error/code").unwrap_or_default();
    error.with_provider_code(Some(String::from(code)))
}

/// The answer of a module as the answer of a model.
fn response_of(envelope: &Value, dialect: Dialect) -> ChatResponse {
    ChatResponse {
        parts: vec![Part::text(envelope["data"].to_string())],
        ..extension(envelope, dialect)
    }
}

/// The same without its words.
pub(super) fn extension(envelope: &Value, dialect: Dialect) -> ChatResponse {
    let mut response = ChatResponse {
        finish_reason: Some(FinishReason::Stop),
        usage: usage_of(&envelope["_usage"]),
        ..ChatResponse::default()
    };
    response.ext.set(dialect, "cogn", envelope.clone());
    response
}

fn usage_of(told: &Value) -> Option<Usage> {
    let count = |keys: [&str; 2]| keys.iter().find_map(|key| told.get(key)?.as_u64());
    let usage = Usage {
        input_tokens: count(["input_tokens", "prompt_tokens"]),
        output_tokens: count(["output_tokens", "completion_tokens"]),
        ..Usage::default()
    };
    (usage.input_tokens.is_some() || usage.output_tokens.is_some()).then_some(usage)
}

fn written(envelope: &Value, mut manner: ResponseMeta) -> Result<Response, VendorError> {
    if envelope["ok"] != true {
        return Err(VendorError::of_envelope(envelope.clone()));
    }
    let mut response = response_of(envelope, manner.dialect);
    manner.complete(&mut response);
    unary::write(manner.dialect, &response)
}
