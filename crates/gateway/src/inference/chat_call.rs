//! A chat request to the back-ends: admitted like any run and relayed once, or again if its answer must match
//! a schema and does not. The response is a stream or complete.

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use engine::port::RawRequest;
use engine::{Admission, RelayRequest, RelayResponse};
use ir::fold::unfold;
use ir::{ChatRequest, ChatResponse, Dialect, Request, RunId, TraceContext, Usage};
use serde_json::{Value, json};

use super::admission::admit;
use super::call_metadata::CallMetadata;
use super::error::VendorError;
use super::extensions::{RequestExtensions, ValidateMode};
use super::response_encoder::{ResponseEncoder, ResponseMeta};
use super::resumable::{self, Frames};
use super::schema_check::{SchemaCheck, Verdict, append_reask, replace_text};
use super::stream;
use super::unary;
use crate::framing::Framing;
use crate::limits;
use crate::state::Gateway;
use crate::stream_limit::{ClientStreams, StreamPermit};
use crate::streaming::{self, OpenStream};
use crate::trace;

pub(super) struct ChatCall {
    pub(super) client: ClientStreams,
    pub(super) dialect: Dialect,
    pub(super) chat: ChatRequest,
    /// The request as sent by the client, if it can be forwarded.
    pub(super) verbatim: Option<RawRequest>,
    /// The only back-end that may be called.
    pub(super) backend: Option<String>,
    pub(super) extensions: RequestExtensions,
    pub(super) streams: bool,
    /// The stream can be resumed.
    pub(super) resumable: bool,
    pub(super) trace: Option<TraceContext>,
}

/// The headers that select a version of a vendor API. None of them is a secret.
const OF_DIALECT: [(Dialect, &str); 3] = [
    (Dialect::Anthropic, "anthropic-version"),
    (Dialect::Anthropic, "anthropic-beta"),
    (Dialect::OpenaiResponses, "openai-beta"),
];

/// The headers of a client that are forwarded to back-ends of its dialect.
pub(super) fn headers_of(dialect: Dialect, headers: &HeaderMap) -> Vec<(&'static str, String)> {
    let known = OF_DIALECT.into_iter().filter(|(own, _)| *own == dialect);
    let value_of = |(_, name): (Dialect, &'static str)| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name, String::from(value)))
    };
    known.filter_map(value_of).collect()
}

impl ChatCall {
    pub(super) async fn answer(
        mut self,
        gateway: &Gateway,
        meta: impl FnOnce(RunId) -> ResponseMeta + Send,
    ) -> Result<Response, VendorError> {
        let check = match self.extensions.validate {
            ValidateMode::Off => None,
            ValidateMode::Check | ValidateMode::Repair => {
                SchemaCheck::of(&self.chat, gateway.engine().schema_threads()).await?
            }
        };
        let permit = self.streams.then(|| gateway.stream_permit(&self.client));
        let mut permit = permit.transpose()?;
        if let Some(check) = check {
            return self.answer_checked(gateway, &check, meta).await;
        }
        if let (true, Some(permit)) = (self.resumable, permit.take()) {
            return self.answer_resumable(gateway, permit, meta).await;
        }
        let chat = std::mem::take(&mut self.chat);
        let verbatim = self.verbatim.take();
        let relayed = self.relay(gateway, chat, verbatim).await?;
        let (run, meta) = (relayed.run, meta(relayed.run));
        let response = match self.streams {
            true => stream::response(relayed, meta, OpenStream::new(gateway, permit)),
            false => unary::response(relayed, meta).await?,
        };
        Ok(trace::write_run_header(response, self.trace, run))
    }

    /// The relay request, with the admission of its caller.
    async fn prepare(
        &self,
        gateway: &Gateway,
        chat: ChatRequest,
        verbatim: Option<RawRequest>,
    ) -> Result<(RelayRequest, Admission), VendorError> {
        let mut request = Request::chat("", chat);
        request.routing.backend.clone_from(&self.backend);
        request.degradation = self.extensions.degradation;
        let call = RelayRequest {
            request: Arc::new(request),
            verbatim: verbatim.map(Arc::new),
            trace: self.trace,
            run: None,
        };
        let admission = admit(gateway, &self.client, &call.request.payload).await?;
        Ok((call, admission))
    }

    async fn relay(
        &self,
        gateway: &Gateway,
        chat: ChatRequest,
        verbatim: Option<RawRequest>,
    ) -> Result<RelayResponse, VendorError> {
        let (call, admission) = self.prepare(gateway, chat, verbatim).await?;
        let tenant = &self.client.caller.tenant;
        let relayed = gateway.engine().relay(tenant, call, admission).await;
        relayed.map_err(|failure| VendorError::from_relay(*failure))
    }

    /// A stream that continues for a while after its client has disconnected and can be resumed.
    async fn answer_resumable(
        mut self,
        gateway: &Gateway,
        permit: StreamPermit,
        meta: impl FnOnce(RunId) -> ResponseMeta + Send,
    ) -> Result<Response, VendorError> {
        // The response format, including the id, is encoded before the run starts; so the run id is created
        // here.
        let clock = gateway.engine().clock();
        let id = RunId::from_parts(clock.now_ms(), clock.random());
        let frames = Frames(ResponseEncoder::new(meta(id)));
        let chat = std::mem::take(&mut self.chat);
        let (mut call, admission) = self.prepare(gateway, chat, None).await?;
        call.run = Some(id);
        let tenant = &self.client.caller.tenant;
        let begun = gateway
            .engine()
            .relay_resumable(tenant, call, admission, Box::new(frames));
        let begun = begun.await.map_err(|failure| VendorError::from_relay(*failure))?;
        let open = OpenStream::new(gateway, Some(permit));
        let receipt = CallMetadata {
            run: begun.run,
            backend: Some(begun.backend.name),
            attempts: Some(begun.attempts),
            cost_usd: None,
        };
        let response = resumable::response(begun.frames, self.dialect, open, &receipt);
        Ok(trace::write_run_header(response, self.trace, begun.run))
    }

    /// The answer that matches the schema, or an error. Nothing is sent before it is validated.
    async fn answer_checked(
        self,
        gateway: &Gateway,
        check: &SchemaCheck,
        meta: impl FnOnce(RunId) -> ResponseMeta + Send,
    ) -> Result<Response, VendorError> {
        let mut chat = self.chat.clone();
        let mut repairs: Vec<&str> = Vec::new();
        let mut before: Option<(CallMetadata, Option<Usage>)> = None;
        loop {
            let relayed = self.relay(gateway, chat.clone(), None).await?;
            let (mut response, mut receipt) = unary::collect(relayed).await?;
            if let Some((earlier, usage)) = before.take() {
                receipt.add(&earlier);
                response.usage = sum_usage(usage, response.usage.take());
            }
            let misfits = match check.judge(&response).await {
                Verdict::Fits => break self.respond_checked(response, &receipt, &repairs, meta),
                Verdict::FitsAs(text) if self.extensions.validate == ValidateMode::Repair => {
                    replace_text(&mut response, text);
                    repairs.push("json_extracted");
                    break self.respond_checked(response, &receipt, &repairs, meta);
                }
                Verdict::FitsAs(_) => vec![String::from("there is text around the JSON")],
                Verdict::Misfit(misfits) => misfits,
            };
            if self.extensions.validate == ValidateMode::Check || repairs.len() >= limits::REPAIRS_MAX {
                let message = format!("the answer does not match the schema: {}", misfits.join("; "));
                return Err(VendorError::new(422, "E3001", message).with_metadata(receipt));
            }
            append_reask(&mut chat, &response, &misfits);
            repairs.push("reasked");
            before = Some((receipt, response.usage.take()));
        }
    }

    fn respond_checked(
        &self,
        mut answer: ChatResponse,
        receipt: &CallMetadata,
        repairs: &[&str],
        meta: impl FnOnce(RunId) -> ResponseMeta + Send,
    ) -> Result<Response, VendorError> {
        let mut meta = meta(receipt.run);
        let beside: Value = json!({"validated": true, "repairs": repairs});
        answer.ext.set(self.dialect, "cogn", beside);
        let mut response = match self.streams {
            false => {
                meta.complete(&mut answer);
                unary::write(self.dialect, &answer)?
            }
            true => {
                let mut bytes = Vec::new();
                let mut voice = ResponseEncoder::new(meta);
                unfold(&answer)
                    .into_iter()
                    .for_each(|event| voice.encode(event, &mut bytes));
                voice.finish(&mut bytes);
                (streaming::head(Framing::Sse), Body::from(bytes)).into_response()
            }
        };
        receipt.write_headers(response.headers_mut());
        Ok(trace::write_run_header(response, self.trace, receipt.run))
    }
}

/// The usage of two calls; unknown if it is unknown for one.
fn sum_usage(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    let (one, other) = (one?, other?);
    let sum = |a: Option<u64>, b: Option<u64>| a?.checked_add(b?);
    Some(Usage {
        input_tokens: sum(one.input_tokens, other.input_tokens),
        output_tokens: sum(one.output_tokens, other.output_tokens),
        estimated: one.estimated || other.estimated,
        ..Usage::default()
    })
}
