//! Generation of one answer: prompt in, events out, token by token. It stops at the end of the answer, at a
//! stop sequence, at the token limit, or when the receiver is dropped. The evaluated prompt stays in the context for
//! the next call.

use std::hash::BuildHasher;

use ir::event::{ADAPTED, SHORTENED, Warning};
use ir::{
    Block, ChatRequest, Component, Error, ErrorKind, Event, FinishReason, Ledger, Phase, Request,
    ResponseFormat, Usage,
};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llguidance::Matcher;
use serde_json::json;
use tokio::sync::mpsc::Sender;

use crate::detokenizer::{Detokenized, Detokenizer};
use crate::grammar::SchemaMatcher;
use crate::json_closer::JsonPosition;
use crate::model::Model;
use crate::prompt_cache::CachedContext;
use crate::{limits, prompt, sampling};

/// Why generation was aborted.
pub(crate) enum Interrupted {
    /// The receiver of the events was dropped.
    ReceiverDropped,
    Failed(Error),
}

impl From<Error> for Interrupted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

pub(crate) fn answer(
    model: &Model,
    context: &mut CachedContext<'_>,
    request: &Request,
    events: &Sender<Event>,
) {
    let Some(chat) = request.as_chat() else { return };
    let out = EventSender(events);
    if let Err(Interrupted::Failed(error)) = run(model, context, chat, &out) {
        // The receiver may be gone.
        out.send(Event::Error { error }).ok();
    }
}

/// The sender of the events of a call.
struct EventSender<'a>(&'a Sender<Event>);

impl EventSender<'_> {
    fn send(&self, event: Event) -> Result<(), Interrupted> {
        self.0
            .blocking_send(event)
            .map_err(|_| Interrupted::ReceiverDropped)
    }

    fn text(&self, text: String) -> Result<(), Interrupted> {
        match text.is_empty() {
            true => Ok(()),
            false => self.send(Event::text(0, text)),
        }
    }

    fn check_receiver(&self) -> Result<(), Interrupted> {
        if self.0.is_closed() {
            Err(Interrupted::ReceiverDropped)
        } else {
            Ok(())
        }
    }
}

fn run(
    model: &Model,
    context: &mut CachedContext<'_>,
    chat: &ChatRequest,
    out: &EventSender<'_>,
) -> Result<(), Interrupted> {
    let mut ledger = Ledger::new(Component::Adapter);
    admit(chat, &mut ledger)?;
    let matcher = constrain(model, chat, &mut ledger);
    let prompt = prompt::render(&model.tokenizer, chat)?;
    if let Some(notice) = prompt.notice {
        ledger.note("/payload/messages", ir::Action::Replaced, notice);
    }
    let room = u64::from(context.llama.n_ctx());
    let length = prompt.tokens.len() as u64;
    if length >= room {
        let message = format!("the messages have {length} tokens; the model's context has {room}");
        return Err(Error::new(ErrorKind::ContextWindow, Phase::BeforeSend, message).into());
    }
    out.send(Event::Started {
        id: None,
        model: Some(model.name.clone()),
        created: None,
    })?;
    for loss in ledger.losses() {
        let warning = Warning::new(ADAPTED, format!("{}: {}", loss.pointer, loss.reason));
        out.send(Event::Warning { warning })?;
    }
    out.send(Event::BlockStart {
        index: 0,
        block: Block::Text,
    })?;
    let requested = chat.generation.max_tokens.unwrap_or(u64::MAX).max(1);
    let mut writer = AnswerWriter {
        model,
        matcher: matcher.map(|schema| schema.matcher),
        chain: sampling::chain(&chat.generation, model.llama.n_vocab(), entropy()),
        reply: Detokenizer::new(chat.generation.stop.clone()),
        place: JsonPosition::default(),
        written: 0,
        limit: requested.min(room - length),
        reused: 0,
        reserve_reached: false,
    };
    let reason = writer.write(context, prompt.tokens, out)?;
    out.text(writer.reply.finish())?;
    out.send(Event::BlockEnd { index: 0 })?;
    if writer.reserve_reached {
        let message = "the answer was closed at the token limit; it may be incomplete";
        let warning = Warning::new(SHORTENED, message);
        out.send(Event::Warning { warning })?;
    }
    out.send(Event::Usage {
        usage: Usage {
            input_tokens: Some(length),
            output_tokens: Some(writer.written),
            cache_read_tokens: Some(writer.reused.min(length)),
            ..Usage::default()
        },
    })?;
    out.send(Event::Finish { reason })
}

/// Refuses unsupported requests, and records settings that are dropped.
fn admit(chat: &ChatRequest, ledger: &mut Ledger) -> Result<(), Error> {
    let settings = &chat.generation;
    if !chat.tools.is_empty() {
        let message = "embedded models do not support tools";
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    }
    if settings.stop.len() > limits::STOPS_MAX
        || settings
            .stop
            .iter()
            .any(|stop| stop.len() > limits::STOP_BYTES_MAX)
    {
        return Err(Error::invalid_request(format!(
            "at most {} stop sequences of at most {} bytes are supported",
            limits::STOPS_MAX,
            limits::STOP_BYTES_MAX
        )));
    }
    if settings.n.is_some_and(|n| n > 1) {
        ledger.dropped("/payload/generation/n", "embedded models return one answer");
    }
    if settings.logprobs == Some(true) {
        ledger.dropped("/payload/generation/logprobs", "embedded models report none");
    }
    if chat.reasoning.is_some() {
        ledger.dropped(
            "/payload/reasoning",
            "embedded models do not support reasoning settings",
        );
    }
    Ok(())
}

fn constrain(model: &Model, chat: &ChatRequest, ledger: &mut Ledger) -> Option<SchemaMatcher> {
    let object;
    let schema = match chat.response_format.as_ref()? {
        ResponseFormat::Text => return None,
        ResponseFormat::JsonObject => {
            object = json!({"type": "object"});
            &object
        }
        ResponseFormat::JsonSchema { schema, .. } => schema,
    };
    match model.grammars.compile(schema) {
        Ok(constraint) => {
            if let Some(notice) = &constraint.notice {
                ledger.note("/payload/response_format", ir::Action::Replaced, notice.clone());
            }
            Some(constraint)
        }
        Err(reason) => {
            ledger.dropped("/payload/response_format", format!("not enforced: {reason}"));
            None
        }
    }
}

struct AnswerWriter<'a> {
    model: &'a Model,
    matcher: Option<Matcher>,
    chain: LlamaSampler,
    reply: Detokenizer,
    place: JsonPosition,
    written: u64,
    limit: u64,
    /// Tokens of the prompt that were evaluated for an earlier call.
    reused: u64,
    /// Whether the token reserve was reached.
    reserve_reached: bool,
}

impl AnswerWriter<'_> {
    fn write(
        &mut self,
        context: &mut CachedContext<'_>,
        prompt: Vec<LlamaToken>,
        out: &EventSender<'_>,
    ) -> Result<FinishReason, Interrupted> {
        let mut pending = prompt;
        // Tokens that the grammar forces at the start are evaluated with the prompt.
        if let Some(reason) = self.put_forced(&mut pending, out)? {
            return Ok(reason);
        }
        self.reused = context.begin(&pending) as u64;
        let mut last = context.evaluate_prompt(&pending, || out.check_receiver())?;
        loop {
            let Some(token) = self.choose(&context.llama, last)? else {
                return Ok(self.natural_end());
            };
            if self.model.llama.vocab().is_eog(token) {
                return Ok(self.natural_end());
            }
            if let Some(reason) = self.put(token, out)? {
                return Ok(reason);
            }
            pending.clear();
            pending.push(token);
            if let Some(reason) = self.put_forced(&mut pending, out)? {
                return Ok(reason);
            }
            last = context.evaluate(&pending, || out.check_receiver())?;
        }
    }

    /// The next token; `None` at the end of the grammar.
    fn choose(&mut self, context: &LlamaContext<'_>, last: i32) -> Result<Option<LlamaToken>, Interrupted> {
        let Some(matcher) = &mut self.matcher else {
            let mut candidates = context.token_data_array_ith(last);
            candidates.apply_sampler(&mut self.chain);
            return Ok(candidates.selected_token());
        };
        if matcher.is_stopped() {
            return Ok(None);
        }
        let mask = matcher.compute_mask().map_err(|error| runtime_failed(&error))?;
        let reserve = (self.limit / 4).clamp(limits::RESERVE_TOKENS_MIN, limits::RESERVE_TOKENS_MAX);
        if self.written + reserve >= self.limit {
            self.reserve_reached = true;
            let vocabulary = matcher.tok_env().map_err(|error| runtime_failed(&error))?;
            let exits = self.place.closing_bytes().iter();
            let mut exits = exits.filter_map(|byte| vocabulary.tok_trie().token_id(&[*byte]));
            if let Some(exit) = exits.find(|exit| mask.is_allowed(*exit)) {
                return Ok(Some(LlamaToken(exit.cast_signed())));
            }
        }
        // Only allowed tokens are sampled: after a key or inside an enumeration these are few.
        let scores = context.get_logits_ith(last);
        let mut candidates = Vec::with_capacity(mask.num_set());
        mask.iter_set_entries(|index| {
            if let (Some(score), Ok(id)) = (scores.get(index), i32::try_from(index)) {
                candidates.push(LlamaTokenData::new(LlamaToken(id), *score, 0.0));
            }
        });
        let mut candidates = LlamaTokenDataArray::new(candidates, false);
        candidates.apply_sampler(&mut self.chain);
        Ok(candidates.selected_token())
    }

    /// Appends a token to the answer.
    fn put(&mut self, token: LlamaToken, out: &EventSender<'_>) -> Result<Option<FinishReason>, Interrupted> {
        self.chain.accept(token);
        if let Some(matcher) = &mut self.matcher {
            matcher
                .consume_token(token.0.cast_unsigned())
                .map_err(|error| runtime_failed(&error))?;
        }
        self.show(token, out)
    }

    /// Appends the tokens that the grammar forces.
    fn put_forced(
        &mut self,
        pending: &mut Vec<LlamaToken>,
        out: &EventSender<'_>,
    ) -> Result<Option<FinishReason>, Interrupted> {
        let Some(matcher) = &mut self.matcher else {
            return Ok(None);
        };
        if matcher.is_stopped() {
            return Ok(None);
        }
        for id in matcher.consume_ff_tokens() {
            let token = LlamaToken(id.cast_signed());
            self.chain.accept(token);
            if let Some(reason) = self.show(token, out)? {
                return Ok(Some(reason));
            }
            pending.push(token);
        }
        Ok(None)
    }

    fn show(
        &mut self,
        token: LlamaToken,
        out: &EventSender<'_>,
    ) -> Result<Option<FinishReason>, Interrupted> {
        self.written += 1;
        let bytes = self.model.bytes(token);
        self.place.advance(&bytes);
        match self.reply.push(&bytes) {
            Detokenized::Text(text) => out.text(text)?,
            Detokenized::Stopped(text) => {
                out.text(text)?;
                return Ok(Some(FinishReason::StopSequence));
            }
        }
        let complete = self.matcher.as_ref().is_some_and(Matcher::is_stopped);
        Ok(match self.written >= self.limit && !complete {
            true => Some(FinishReason::Length),
            false => None,
        })
    }

    fn natural_end(&self) -> FinishReason {
        if self.reserve_reached {
            FinishReason::Length
        } else {
            FinishReason::Stop
        }
    }
}

/// A seed for requests without one.
#[expect(
    clippy::disallowed_types,
    reason = "it selects among likely tokens; nothing depends on its secrecy"
)]
fn entropy() -> u32 {
    let wide = std::hash::RandomState::new().hash_one(0_u8);
    u32::try_from(wide >> 32).unwrap_or_default()
}

pub(crate) fn runtime_failed(error: &dyn std::fmt::Display) -> Error {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let message = format!("the runtime of the embedded model failed: {line}");
    Error::new(ErrorKind::Upstream, Phase::MidStream, message)
}
