//! One answer: prompt in, events out, token by token. It stops at the end of the answer, at a stop sequence,
//! at the token limit, or as soon as nobody listens.

use std::hash::{BuildHasher, RandomState};

use ir::event::{ADAPTED, SHORTENED, Warning};
use ir::{
    Block, ChatRequest, Error, ErrorKind, Event, FinishReason, Ledger, Component, Phase, Request, ResponseFormat,
    Usage,
};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llguidance::Matcher;
use serde_json::json;
use tokio::sync::mpsc::Sender;

use crate::grammar::SchemaMatcher;
use crate::model::Model;
use crate::detokenizer::{Detokenized, Detokenizer};
use crate::json_closer::JsonPosition;
use crate::{limits, prompt, sampling};

/// Why an answer ended before its end.
enum Interrupted {
    /// Nobody listens any more.
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
    context: &mut LlamaContext<'_>,
    request: &Request,
    events: &Sender<Event>,
) {
    let Some(chat) = request.as_chat() else { return };
    let out = EventSender(events);
    if let Err(Interrupted::Failed(error)) = run(model, context, chat, &out) {
        // Nobody may be there to hear it.
        out.send(Event::Error { error }).ok();
    }
    context.clear_kv_cache();
}

/// Where events go.
struct EventSender<'a>(&'a Sender<Event>);

impl EventSender<'_> {
    fn send(&self, event: Event) -> Result<(), Interrupted> {
        self.0.blocking_send(event).map_err(|_| Interrupted::ReceiverDropped)
    }

    fn text(&self, text: String) -> Result<(), Interrupted> {
        match text.is_empty() {
            true => Ok(()),
            false => self.send(Event::text(0, text)),
        }
    }

    fn listening(&self) -> Result<(), Interrupted> {
        if self.0.is_closed() {
            Err(Interrupted::ReceiverDropped)
        } else {
            Ok(())
        }
    }
}

fn run(model: &Model, context: &mut LlamaContext<'_>, chat: &ChatRequest, out: &EventSender<'_>) -> Result<(), Interrupted> {
    let mut ledger = Ledger::new(Component::Adapter);
    admit(chat, &mut ledger)?;
    let held = hold(model, chat, &mut ledger);
    let prompt = prompt::render(&model.tokenizer, chat)?;
    if let Some(notice) = prompt.notice {
        ledger.note("/payload/messages", ir::Action::Replaced, notice);
    }
    let room = u64::from(context.n_ctx());
    let length = prompt.tokens.len() as u64;
    if length >= room {
        let message = format!("the messages have {length} tokens; the model's context holds {room}");
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
    let asked = chat.generation.max_tokens.unwrap_or(u64::MAX).max(1);
    let mut writer = AnswerWriter {
        model,
        matcher: held.map(|held| held.matcher),
        chain: sampling::chain(&chat.generation, model.llama.n_vocab(), entropy()),
        reply: Detokenizer::new(chat.generation.stop.clone()),
        place: JsonPosition::default(),
        written: 0,
        limit: asked.min(room - length),
        position: 0,
        hurried: false,
    };
    let reason = writer.write(context, prompt.tokens, out)?;
    out.text(writer.reply.finish())?;
    out.send(Event::BlockEnd { index: 0 })?;
    if writer.hurried {
        let message = "the answer was brought to its end because its tokens ran out; it may be cut short";
        let warning = Warning::new(SHORTENED, message);
        out.send(Event::Warning { warning })?;
    }
    out.send(Event::Usage {
        usage: Usage {
            input_tokens: Some(length),
            output_tokens: Some(writer.written),
            ..Usage::default()
        },
    })?;
    out.send(Event::Finish { reason })
}

/// Refuses what cannot be done, and books what is left out.
fn admit(chat: &ChatRequest, ledger: &mut Ledger) -> Result<(), Error> {
    let knobs = &chat.generation;
    if !chat.tools.is_empty() {
        let message = "an embedded model cannot call tools";
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    }
    if knobs.stop.len() > limits::STOPS_MAX
        || knobs.stop.iter().any(|stop| stop.len() > limits::STOP_BYTES_MAX)
    {
        return Err(Error::invalid_request(format!(
            "at most {} stop sequences of at most {} bytes",
            limits::STOPS_MAX,
            limits::STOP_BYTES_MAX
        )));
    }
    if knobs.n.is_some_and(|n| n > 1) {
        ledger.dropped("/payload/generation/n", "an embedded model gives one answer");
    }
    if knobs.logprobs == Some(true) {
        ledger.dropped("/payload/generation/logprobs", "an embedded model reports none");
    }
    if chat.reasoning.is_some() {
        ledger.dropped(
            "/payload/reasoning",
            "an embedded model thinks as it was trained to",
        );
    }
    Ok(())
}

fn hold(model: &Model, chat: &ChatRequest, ledger: &mut Ledger) -> Option<SchemaMatcher> {
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
        Ok(held) => {
            if let Some(notice) = &held.notice {
                ledger.note("/payload/response_format", ir::Action::Replaced, notice.clone());
            }
            Some(held)
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
    /// Where the next token stands in the context.
    position: i32,
    /// The reserve was touched.
    hurried: bool,
}

impl AnswerWriter<'_> {
    fn write(
        &mut self,
        context: &mut LlamaContext<'_>,
        prompt: Vec<LlamaToken>,
        out: &EventSender<'_>,
    ) -> Result<FinishReason, Interrupted> {
        let mut batch = LlamaBatch::new(limits::BATCH_TOKENS, 1);
        let mut pending = prompt;
        // What the grammar begins with needs no asking.
        if let Some(reason) = self.put_forced(&mut pending, out)? {
            return Ok(reason);
        }
        loop {
            let last = self.evaluate(context, &mut batch, &pending, out)?;
            pending.clear();
            let Some(token) = self.choose(context, last)? else {
                return Ok(self.natural_end());
            };
            if self.model.llama.vocab().is_eog(token) {
                return Ok(self.natural_end());
            }
            if let Some(reason) = self.put(token, out)? {
                return Ok(reason);
            }
            pending.push(token);
            if let Some(reason) = self.put_forced(&mut pending, out)? {
                return Ok(reason);
            }
        }
    }

    /// Runs tokens through the model, in batches between which a cancelled call is noticed. Returns where the
    /// scores of the next token stand.
    fn evaluate(
        &mut self,
        context: &mut LlamaContext<'_>,
        batch: &mut LlamaBatch<'_>,
        tokens: &[LlamaToken],
        out: &EventSender<'_>,
    ) -> Result<i32, Interrupted> {
        let mut last = 0;
        let mut left = tokens.len();
        for part in tokens.chunks(limits::BATCH_TOKENS) {
            out.listening()?;
            batch.clear();
            left -= part.len();
            for (index, token) in part.iter().enumerate() {
                let scored = left == 0 && index + 1 == part.len();
                batch
                    .add(*token, self.position, &[0], scored)
                    .map_err(|error| runtime_failed(&error))?;
                self.position += 1;
            }
            context.decode(batch).map_err(|error| runtime_failed(&error))?;
            last = batch.n_tokens() - 1;
        }
        Ok(last)
    }

    /// The next token; `None` when the grammar is at its end.
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
            self.hurried = true;
            let vocabulary = matcher.tok_env().map_err(|error| runtime_failed(&error))?;
            let ways = self.place.closing_bytes().iter();
            let mut ways = ways.filter_map(|byte| vocabulary.tok_trie().token_id(&[*byte]));
            if let Some(way) = ways.find(|way| mask.is_allowed(*way)) {
                return Ok(Some(LlamaToken(way.cast_signed())));
            }
        }
        // Only what is allowed is weighed: after a key or inside an enumeration that is a handful.
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

    /// Takes a token into the answer.
    fn put(&mut self, token: LlamaToken, out: &EventSender<'_>) -> Result<Option<FinishReason>, Interrupted> {
        self.chain.accept(token);
        if let Some(matcher) = &mut self.matcher {
            matcher
                .consume_token(token.0.cast_unsigned())
                .map_err(|error| runtime_failed(&error))?;
        }
        self.show(token, out)
    }

    /// Takes what the grammar leaves no choice about.
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

    fn show(&mut self, token: LlamaToken, out: &EventSender<'_>) -> Result<Option<FinishReason>, Interrupted> {
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
        if self.hurried {
            FinishReason::Length
        } else {
            FinishReason::Stop
        }
    }
}

/// A seed for whoever gave none.
fn entropy() -> u32 {
    let wide = RandomState::new().hash_one(0_u8);
    u32::try_from(wide >> 32).unwrap_or_default()
}

fn runtime_failed(error: &dyn std::fmt::Display) -> Error {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let message = format!("the runtime of the embedded model failed: {line}");
    Error::new(ErrorKind::Upstream, Phase::MidStream, message)
}
