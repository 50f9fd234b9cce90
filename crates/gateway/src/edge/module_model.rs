//! A module as a model: `module:NAME`. The last user message is its input, the answer's text is its `data`
//! as JSON, and the whole envelope stands beside it under `cogn`. A module may start over while it runs, and
//! no vendor's stream can take a word back; so a stream waits, with signs of life, and then says everything.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::port::Rendered;
use engine::run::{OnDisconnect, envelope};
use futures::future::BoxFuture;
use futures::stream;
use ir::event::FinishReason;
use ir::fold::unfold;
use ir::{
    ChatRequest, ChatResponse, Dialect, Error, ErrorKind, Event, Part, PartBody, Phase, Role, RunId,
    TraceContext, Usage,
};
use module::envelope::ErrorBody;
use module::{Code, Module};
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
use crate::reply::Refusal;
use crate::request::{ExecuteBody, RequestOptions};
use crate::seats::{Client, Seat};
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

/// A module that runs.
pub(super) struct Begun {
    pub(super) run: RunId,
    pub(super) trace: Option<TraceContext>,
    last: Last,
    seat: Option<Seat>,
}

impl ModuleCall {
    pub(super) async fn begin(self, gateway: &Gateway, headers: &HeaderMap) -> Result<Begun, Refusal> {
        let input = input_of(&self.chat)?;
        let max = gateway.settings().streams_per_client_max;
        let seat = self.streams.then(|| gateway.seats.take(&self.client, max));
        let seat = seat.transpose()?;
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
        Ok(Begun {
            run: begun.subscription.run(),
            trace,
            last: Box::pin(begun.subscription.last()),
            seat,
        })
    }

    pub(super) async fn answer(
        self,
        gateway: &Gateway,
        headers: &HeaderMap,
        manner: impl FnOnce(RunId) -> Manner,
    ) -> Result<Response, Failure> {
        let streams = self.streams;
        let begun = self.begin(gateway, headers).await?;
        let (run, trace) = (begun.run, begun.trace);
        let receipt = Receipt {
            run,
            backend: None,
            attempts: None,
            cost_usd: None,
        };
        let manner = manner(run);
        let failed = |failure: Failure| failure.with_receipt(receipt.clone());
        let mut response = match streams {
            false => written(&begun.whole().await, manner).map_err(failed)?,
            true => {
                let say = move |envelope: &Value| told(envelope, manner);
                let body = begun.stream(gateway, Framing::Sse.heartbeat(), say).await;
                let body = body.map_err(|envelope| failed(Failure::of_envelope(envelope)))?;
                (streaming::head(Framing::Sse), body).into_response()
            }
        };
        receipt.put(response.headers_mut());
        Ok(trace::tell_run(response, trace, run))
    }
}

impl Begun {
    /// The envelope that it ends with.
    pub(super) async fn whole(self) -> Value {
        envelope_of(self.last.await)
    }

    /// Signs of life, and at the end whatever `say` makes of the envelope. An end that comes soon still has a
    /// status; a stream that has begun can only say it failed.
    pub(super) async fn stream(
        mut self,
        gateway: &Gateway,
        heartbeat: &'static [u8],
        say: impl FnOnce(&Value) -> Vec<u8> + Send + 'static,
    ) -> Result<Body, Value> {
        let soon = tokio::time::timeout(limits::HEARTBEAT, &mut self.last).await.ok();
        let stage = match soon.map(envelope_of) {
            Some(envelope) if envelope["ok"] == true => Stage::Done(Box::new(envelope)),
            Some(envelope) => return Err(envelope),
            None => Stage::Waits(self.last),
        };
        let reader = Reader {
            stage,
            heartbeat,
            say: Some(Box::new(say)),
            open: OpenStream::new(gateway, self.seat),
        };
        Ok(Body::from_stream(stream::unfold(reader, next)))
    }
}

struct Reader {
    stage: Stage,
    heartbeat: &'static [u8],
    say: Option<Say>,
    open: OpenStream,
}

type Say = Box<dyn FnOnce(&Value) -> Vec<u8> + Send>;

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
                return Some((Ok(Bytes::from_static(reader.heartbeat)), reader));
            }
        },
    };
    let say = reader.say.take()?;
    let bytes = say(&envelope);
    reader.open.count(bytes.len());
    Some((Ok(Bytes::from(bytes)), reader))
}

/// The last message that is the user's: an object is the input, anything else the arguments.
fn input_of(chat: &ChatRequest) -> Result<Value, Refusal> {
    let last = chat
        .messages
        .iter()
        .rev()
        .find(|message| message.role == Role::User);
    let Some(message) = last else {
        let message = "a module is asked by a user's message, and there is none";
        return Err(Refusal::new(ErrorBody::new(Code::E1001, message)));
    };
    let only_text = message
        .parts
        .iter()
        .all(|part| matches!(part.body, PartBody::Text(_)));
    if !only_text {
        let message =
            "a module is asked by text; media goes into its input, which the text can hold as a JSON object";
        let body = ErrorBody::new(Code::E4011, message);
        return Err(Refusal::with_status(body, StatusCode::BAD_REQUEST));
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
pub(super) fn outcome_of(envelope: &Value) -> Result<ChatResponse, Error> {
    if envelope["ok"] == true {
        return Ok(ChatResponse {
            parts: vec![Part::text(envelope["data"].to_string())],
            finish_reason: Some(FinishReason::Stop),
            usage: usage_of(&envelope["_usage"]),
            ..ChatResponse::default()
        });
    }
    Err(error_of(envelope))
}

/// A module's failure as a back-end's.
pub(super) fn error_of(envelope: &Value) -> Error {
    let text = |pointer: &str| envelope.pointer(pointer).and_then(Value::as_str);
    let message = text("/error/message").unwrap_or_default();
    let error = Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message);
    let code = text("/error/code").unwrap_or_default();
    error.with_provider_code(Some(String::from(code)))
}

/// The same with the envelope beside it.
fn response_of(envelope: &Value, dialect: Dialect) -> Result<ChatResponse, Error> {
    let mut response = outcome_of(envelope)?;
    response.ext.set(dialect, "cogn", envelope.clone());
    Ok(response)
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
    let response = response_of(envelope, manner.dialect);
    let mut response = response.map_err(|_| Failure::of_envelope(envelope.clone()))?;
    manner.complete(&mut response);
    whole::write(manner.dialect, &response)
}

/// Everything at once, or why there is nothing.
fn told(envelope: &Value, manner: Manner) -> Vec<u8> {
    let mut bytes = Vec::new();
    let dialect = manner.dialect;
    let mut voice = Voice::new(manner);
    let events = match response_of(envelope, dialect) {
        Ok(response) => unfold(&response),
        Err(error) => vec![Event::Error { error }],
    };
    for event in events {
        voice.say(event, &mut bytes);
    }
    voice.end(&mut bytes);
    bytes
}
