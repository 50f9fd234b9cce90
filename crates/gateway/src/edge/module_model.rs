//! A module as a model: `module:NAME`. The last user message is its input, the answer's text is its `data`
//! as JSON, and the whole envelope stands beside it under `cogn`. A module may start over while it runs, and
//! no vendor's stream can take a word back; so a stream waits, with signs of life, and then says everything.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use engine::port::Rendered;
use engine::run::{OnDisconnect, envelope};
use futures::future::BoxFuture;
use futures::stream;
use ir::event::FinishReason;
use ir::fold::unfold;
use ir::{ChatRequest, ChatResponse, Dialect, Error, ErrorKind, Event, Part, PartBody, Phase, Role, Usage};
use module::Module;
use serde_json::{Value, json};

use super::failure::Failure;
use super::receipt::Receipt;
use super::voice::{Manner, Voice};
use super::whole;
use crate::call::Call;
use crate::framing::Framing;
use crate::limits;
use crate::negotiate::{Signals, Wanted};
use crate::once::Repeat;
use crate::request::{ExecuteBody, RequestOptions};
use crate::seats::Client;
use crate::state::Gateway;
use crate::streaming::{self, OpenStream};
use crate::trace;

/// What is asked of a module.
pub(super) struct ModuleCall {
    pub(super) client: Client,
    pub(super) module: Arc<Module>,
    pub(super) chat: ChatRequest,
    pub(super) streams: bool,
}

/// The last event of a run, once it is there.
type Last = BoxFuture<'static, Result<Rendered, engine::Error>>;

impl ModuleCall {
    pub(super) async fn answer(
        self,
        gateway: &Gateway,
        headers: &HeaderMap,
        manner: impl FnOnce(ir::RunId) -> Manner,
    ) -> Result<Response, Failure> {
        let input = input_of(&self.chat)?;
        let seat = match self.streams {
            true => Some(
                gateway
                    .seats
                    .take(&self.client, gateway.settings().streams_per_client_max)?,
            ),
            false => None,
        };
        let trace = trace::of(headers);
        let call = Call {
            client: self.client,
            module: self.module,
            body: ExecuteBody {
                input,
                options: RequestOptions {
                    on_disconnect: OnDisconnect::Cancel,
                    progress: Some(false),
                    trace,
                    ..RequestOptions::default()
                },
                recovery: None,
            },
            signals: Signals {
                header: Some(Wanted::Sync),
                ..Signals::default()
            },
            repeat: Repeat::from_headers(headers)?,
        };
        let begun = call.begin(gateway).await?;
        let run = begun.subscription.run();
        let receipt = Receipt {
            run,
            backend: None,
            attempts: None,
            cost_usd: None,
        };
        let manner = manner(run);
        let mut last: Last = Box::pin(begun.subscription.last());
        if !self.streams {
            let response = written(&envelope_of(last.await), manner);
            let mut response = response.map_err(|failure| failure.with_receipt(receipt.clone()))?;
            receipt.put(response.headers_mut());
            return Ok(trace::tell_run(response, trace, run));
        }
        // An end that comes soon still has a status; a stream that has begun can only say it failed.
        let soon = tokio::time::timeout(limits::HEARTBEAT, &mut last).await.ok();
        let stage = match soon.map(envelope_of) {
            Some(envelope) if envelope["ok"] == true => Stage::Done(Box::new(envelope)),
            Some(envelope) => return Err(Failure::of_envelope(envelope).with_receipt(receipt)),
            None => Stage::Waits(last),
        };
        let reader = Reader {
            stage,
            manner,
            open: OpenStream::new(gateway, seat),
        };
        let body = Body::from_stream(stream::unfold(reader, next));
        let mut response = (streaming::head(Framing::Sse), body).into_response();
        receipt.put(response.headers_mut());
        Ok(trace::tell_run(response, trace, run))
    }
}

struct Reader {
    stage: Stage,
    manner: Manner,
    open: OpenStream,
}

enum Stage {
    Waits(Last),
    Done(Box<Value>),
    Ended,
}

async fn next(mut reader: Reader) -> Option<(Result<Bytes, Infallible>, Reader)> {
    let envelope = match std::mem::replace(&mut reader.stage, Stage::Ended) {
        Stage::Ended => return None,
        Stage::Done(envelope) => *envelope,
        Stage::Waits(mut last) => match tokio::time::timeout(limits::HEARTBEAT, &mut last).await {
            Ok(last) => envelope_of(last),
            Err(_) => {
                reader.stage = Stage::Waits(last);
                return Some((Ok(Bytes::from_static(Framing::Sse.heartbeat())), reader));
            }
        },
    };
    let bytes = told(&envelope, reader.manner.clone());
    reader.open.count(bytes.len());
    Some((Ok(Bytes::from(bytes)), reader))
}

/// The last message that is the user's: an object is the input, anything else the arguments.
fn input_of(chat: &ChatRequest) -> Result<Value, Failure> {
    let last = chat
        .messages
        .iter()
        .rev()
        .find(|message| message.role == Role::User);
    let Some(message) = last else {
        return Err(Failure::invalid(
            "a module is asked by a user's message, and there is none",
        ));
    };
    let only_text = message
        .parts
        .iter()
        .all(|part| matches!(part.body, PartBody::Text(_)));
    if !only_text {
        let message =
            "a module is asked by text; media goes into its input, which the text can hold as a JSON object";
        return Err(Failure::new(400, "E4011", message));
    }
    let text = message.joined_text();
    match serde_json::from_str::<Value>(&text) {
        Ok(input @ Value::Object(_)) => Ok(input),
        _ => Ok(json!({"$ARGUMENTS": text, "query": text})),
    }
}

fn envelope_of(last: Result<Rendered, engine::Error>) -> Value {
    match last {
        Ok(last) => envelope(&last),
        Err(error) => module::envelope::Envelope::failure(error.into_body()).into_value(),
    }
}

/// The answer of a module as the answer of a model.
fn response_of(envelope: &Value, dialect: Dialect) -> ChatResponse {
    let mut response = ChatResponse {
        parts: vec![Part::text(envelope["data"].to_string())],
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

fn written(envelope: &Value, mut manner: Manner) -> Result<Response, Failure> {
    if envelope["ok"] != true {
        return Err(Failure::of_envelope(envelope.clone()));
    }
    let mut response = response_of(envelope, manner.dialect);
    manner.complete(&mut response);
    whole::write(manner.dialect, &response)
}

/// Everything at once, or why there is nothing.
fn told(envelope: &Value, manner: Manner) -> Vec<u8> {
    let mut bytes = Vec::new();
    let dialect = manner.dialect;
    let mut voice = Voice::new(manner);
    let events = match envelope["ok"] == true {
        true => unfold(&response_of(envelope, dialect)),
        false => {
            let text = |pointer: &str| {
                envelope
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let error = Error::new(
                ErrorKind::InvalidResponse,
                Phase::MidStream,
                text("/error/message"),
            );
            let code = Some(String::from(text("/error/code")));
            vec![Event::Error {
                error: error.with_provider_code(code),
            }]
        }
    };
    for event in events {
        voice.say(event, &mut bytes);
    }
    voice.end(&mut bytes);
    bytes
}
