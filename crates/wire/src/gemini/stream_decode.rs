//! Decodes a stream: every event is a partial response in the format of a unary one. Adjacent texts are one
//! block. The stream has no end marker; a finish reason marks the end.

use ir::event::Warning;
use ir::{
    Block, Delta, Error, Event, Ext, Fields, FinishReason, Map, Part, PartBody, Phase, ReasoningForm,
    ReasoningOrigin, ToolCall, Usage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::call_id::CallIds;
use crate::error_body;
use crate::gemini::response::{blocked, created, finish_of};
use crate::gemini::{OWN, merge_text, part_decode, partial_args, usage};
use crate::limits::EVENT_BYTES_MAX;
use crate::stream::{DecodeFrame, truncated, undecodable};

#[derive(Debug)]
pub(crate) struct StreamDecoder {
    started: bool,
    next: u32,
    open: Option<(u32, OpenPart)>,
    calls: CallIds,
    called: bool,
    partial: Option<PartialCall>,
    /// Response-level fields. Every event repeats them, so the last value counts.
    facts: Map,
    counts: Usage,
    finish: Option<FinishReason>,
    warned: bool,
}

/// A call whose arguments arrive in pieces.
#[derive(Debug)]
struct PartialCall {
    id: String,
    name: String,
    arguments: Value,
    bytes: usize,
    ext: Ext,
}

/// Lists of the candidate of which every event contains the next members.
const GROWING: [&str; 2] = ["citationMetadata", "logprobsResult"];

impl Default for StreamDecoder {
    fn default() -> Self {
        Self {
            started: false,
            next: 0,
            open: None,
            calls: CallIds::new(OWN),
            called: false,
            partial: None,
            facts: Map::new(),
            counts: Usage::default(),
            finish: None,
            warned: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenPart {
    Text,
    Reasoning,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FastChunk {
    candidates: (FastCandidate,),
    #[serde(default)]
    usage_metadata: Option<FastUsage>,
    #[serde(default, rename = "modelVersion")]
    _model_version: IgnoredAny,
    #[serde(default, rename = "responseId")]
    _response_id: IgnoredAny,
    #[serde(default, rename = "createTime")]
    _create_time: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastCandidate {
    content: FastContent,
    #[serde(default)]
    index: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastContent {
    parts: (FastPart,),
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastPart {
    text: String,
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FastUsage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
}

impl DecodeFrame for StreamDecoder {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.started
            && self.partial.is_none()
            && let Ok(FastChunk {
                candidates: (FastCandidate { content, index: 0 },),
                usage_metadata,
                ..
            }) = serde_json::from_str(data)
        {
            let (FastPart { text, thought },) = content.parts;
            self.text(text, thought, out);
            if let Some(usage) = usage_metadata.as_ref().map(short_usage)
                && usage != self.counts
            {
                self.counts = usage.clone();
                out.push(Event::Usage { usage });
            }
            return;
        }
        match serde_json::from_str::<Value>(data) {
            Ok(value) => self.chunk(value, out),
            Err(why) => out.push(undecodable(OWN, &why)),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        let Some(reason) = self.finish.take() else {
            return out.push(truncated());
        };
        self.end_partial(out);
        self.close(out);
        out.extend(ir::fold::meta(OWN, std::mem::take(&mut self.facts)));
        out.push(Event::Finish { reason });
    }
}

/// The usage that a chunk or an error reports.
fn reported(counts: &Value) -> Option<Event> {
    counts.is_object().then(|| Event::Usage {
        usage: usage::decode(counts),
    })
}

/// The usage so far. The vendor's own counts come with the last event.
fn short_usage(counts: &FastUsage) -> Usage {
    Usage {
        input_tokens: usage::sum(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        output_tokens: usage::sum(counts.candidates_token_count, counts.thoughts_token_count),
        cache_read_tokens: counts.cached_content_token_count,
        reasoning_tokens: counts.thoughts_token_count,
        ..Usage::default()
    }
}

impl StreamDecoder {
    fn chunk(&mut self, value: Value, out: &mut Vec<Event>) {
        if let Some(error) = error_body::from_value(OWN, &value, Phase::MidStream, None) {
            out.extend(value.get("usageMetadata").and_then(reported));
            return out.push(Event::Error { error });
        }
        let Some(mut fields) = Fields::of(value) else {
            return;
        };
        let (id, model) = (fields.string("responseId"), fields.string("modelVersion"));
        let mut ext = Ext::default();
        let created = created(&mut fields, &mut ext);
        if !std::mem::replace(&mut self.started, true) {
            self.calls = CallIds::of_answer(OWN, id.as_deref());
            out.push(Event::Started { id, model, created });
            if !ext.is_empty() {
                out.push(Event::Meta { ext });
            }
        }
        let counts = fields
            .object("usageMetadata")
            .map(|counts| Value::Object(counts.rest()));
        let usage = counts.as_ref().and_then(reported);
        let candidates = fields.array("candidates").unwrap_or_default();
        if candidates.is_empty()
            && let Some(error) = fields
                .peek("promptFeedback")
                .and_then(|feedback| blocked(feedback, Phase::MidStream))
        {
            out.extend(usage);
            return out.push(Event::Error { error });
        }
        for candidate in candidates.into_iter().filter_map(Fields::of) {
            self.candidate(candidate, out);
        }
        // It includes the output of the same chunk.
        out.extend(usage);
        self.facts.extend(fields.rest());
    }

    fn candidate(&mut self, mut candidate: Fields, out: &mut Vec<Event>) {
        if candidate.peek("index").and_then(Value::as_u64).unwrap_or(0) > 0 {
            if !std::mem::replace(&mut self.warned, true) {
                let message = "the stream contains several candidates; only the first is used";
                out.push(Event::Warning {
                    warning: Warning::new("further_choices_dropped", message),
                });
            }
            return;
        }
        drop_constant(&mut candidate, "index", &json!(0));
        let mut content = candidate.object("content").unwrap_or_default();
        for part in content.array("parts").unwrap_or_default() {
            if !self.partial_call(&part, out) {
                self.end_partial(out);
                let part = part_decode::decode(part, &mut self.calls);
                self.part(part, out);
            }
        }
        if let Some(word) = candidate.string("finishReason") {
            self.end_partial(out);
            let mut ext = Ext::default();
            self.finish = Some(finish_of(&word, self.called, &mut ext));
            if !ext.is_empty() {
                out.push(Event::Meta { ext });
            }
        }
        drop_constant(&mut content, "role", &json!("model"));
        let mut grown = Map::new();
        for key in GROWING {
            if let Some(value) = candidate.take(key) {
                grown.insert(String::from(key), value);
            }
        }
        if !grown.is_empty() {
            let rest = Map::from_iter([(String::from("candidate"), Value::Object(grown))]);
            out.extend(ir::fold::meta(OWN, rest));
        }
        for (key, kept) in [("content", content), ("candidate", candidate)] {
            if kept.is_empty() {
                continue;
            }
            let slot = self.facts.entry(key).or_insert_with(|| json!({}));
            if let Some(slot) = slot.as_object_mut() {
                slot.extend(kept.rest());
            }
        }
    }

    fn text(&mut self, text: String, thought: bool, out: &mut Vec<Event>) {
        let kind = if thought {
            OpenPart::Reasoning
        } else {
            OpenPart::Text
        };
        if text.is_empty() && self.open.is_none_or(|(_, open)| open != kind) {
            return;
        }
        let index = self.begin(kind, out);
        if text.is_empty() {
            return;
        }
        let delta = if thought {
            Delta::Reasoning { text }
        } else {
            Delta::Text { text }
        };
        out.push(Event::BlockDelta { index, delta });
    }

    fn begin(&mut self, kind: OpenPart, out: &mut Vec<Event>) -> u32 {
        if let Some((index, open)) = self.open
            && open == kind
        {
            return index;
        }
        let block = match kind {
            OpenPart::Text => Block::Text,
            OpenPart::Reasoning => Block::Reasoning {
                form: ReasoningForm::Text,
                id: None,
                origin: Some(ReasoningOrigin::dialect(OWN)),
            },
        };
        let index = self.start(block, out);
        self.open = Some((index, kind));
        index
    }

    fn start(&mut self, block: Block, out: &mut Vec<Event>) -> u32 {
        self.close(out);
        let index = self.next;
        self.next += 1;
        out.push(Event::BlockStart { index, block });
        index
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        if let Some((index, _)) = self.open.take() {
            out.push(Event::BlockEnd { index });
        }
    }

    /// A part of the response. A part with more fields than its text ends its block.
    fn part(&mut self, part: Part, out: &mut Vec<Event>) {
        let Part { body, ext, .. } = part;
        match body {
            PartBody::Text(text) if ext.is_empty() => self.text(text, false, out),
            PartBody::Text(text) => self.last_text(text, false, None, ext, out),
            PartBody::Reasoning(reasoning) => {
                let text = reasoning.text.unwrap_or_default();
                match reasoning.signature {
                    None if ext.is_empty() => self.text(text, true, out),
                    signature => self.last_text(text, true, signature, ext, out),
                }
            }
            PartBody::ToolCall(call) => {
                self.called = true;
                let block = Block::ToolCall {
                    id: call.id,
                    name: call.name,
                };
                let index = self.start(block, out);
                let json = call.arguments_raw;
                out.push(Event::BlockDelta {
                    index,
                    delta: Delta::ToolArguments { json },
                });
                end_block(index, ext, out);
            }
            PartBody::Media(media) => {
                let index = self.start(Block::Media { media }, out);
                end_block(index, ext, out);
            }
            PartBody::Unknown { dialect, raw } => {
                let index = self.start(Block::Unknown { dialect, raw }, out);
                end_block(index, ext, out);
            }
            PartBody::ToolResult(result) => {
                // Models do not return tool results; the part is preserved as unknown.
                let raw = serde_json::to_value(&result).unwrap_or_default();
                let dialect = String::from(ir::Dialect::Canonical.as_str());
                let index = self.start(Block::Unknown { dialect, raw }, out);
                end_block(index, ext, out);
            }
            PartBody::Refusal(_) => {}
        }
    }

    /// The last piece of a text, with its extra fields.
    fn last_text(
        &mut self,
        text: String,
        thought: bool,
        signature: Option<String>,
        ext: Ext,
        out: &mut Vec<Event>,
    ) {
        if !text.is_empty() && !merge_text::goes_on_with(&ext) {
            self.close(out);
        }
        let index = self.begin(
            if thought {
                OpenPart::Reasoning
            } else {
                OpenPart::Text
            },
            out,
        );
        self.text(text, thought, out);
        if let Some(signature) = signature {
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Signature { signature },
            });
        }
        self.open = None;
        end_block(index, ext, out);
    }

    /// Consumes a piece of a streamed call; returns whether the part was one.
    fn partial_call(&mut self, part: &Value, out: &mut Vec<Event>) -> bool {
        let Some(call) = part.get("functionCall").and_then(Value::as_object) else {
            return false;
        };
        let continues = call.get("willContinue") == Some(&Value::Bool(true));
        let pieces = call.get("partialArgs").and_then(Value::as_array);
        let last = !call.contains_key("name") && self.partial.is_some();
        if !continues && pieces.is_none() && !last {
            return false;
        }
        if let Some(name) = call.get("name").and_then(Value::as_str) {
            self.begin_partial(name, call, part, out);
        }
        let Some(partial) = &mut self.partial else {
            out.push(broken("a delta of a call that was not started"));
            return true;
        };
        for piece in pieces.into_iter().flatten() {
            let more = piece.get("stringValue").and_then(Value::as_str);
            partial.bytes += more.map_or(0, str::len) + 16;
            if partial.bytes > EVENT_BYTES_MAX || partial_args::add(&mut partial.arguments, piece).is_none() {
                out.push(broken("call arguments with an invalid path"));
                return true;
            }
        }
        if !continues {
            self.end_partial(out);
        }
        true
    }

    fn begin_partial(&mut self, name: &str, call: &Map, part: &Value, out: &mut Vec<Event>) {
        self.end_partial(out);
        let mut ext = Ext::default();
        let said = call.get("id").and_then(Value::as_str).map(String::from);
        let id = self.calls.call(name, said, &mut ext);
        let mut rest = part.as_object().cloned().unwrap_or_default();
        rest.shift_remove("functionCall");
        ext.extend(OWN, rest);
        self.partial = Some(PartialCall {
            id,
            name: String::from(name),
            arguments: call.get("args").cloned().unwrap_or_else(|| json!({})),
            bytes: 0,
            ext,
        });
    }

    fn end_partial(&mut self, out: &mut Vec<Event>) {
        if let Some(partial) = self.partial.take() {
            let call = ToolCall::from_value(partial.id, partial.name, partial.arguments);
            let part = Part {
                ext: partial.ext,
                ..Part::from(PartBody::ToolCall(call))
            };
            self.part(part, out);
        }
    }
}

fn end_block(index: u32, ext: Ext, out: &mut Vec<Event>) {
    if !ext.is_empty() {
        out.push(Event::BlockDelta {
            index,
            delta: Delta::Meta { ext },
        });
    }
    out.push(Event::BlockEnd { index });
}

fn broken(what: &str) -> Event {
    let error = Error::invalid_response(Phase::MidStream, format!("the stream contains {what}"));
    Event::Error { error }
}

fn drop_constant(fields: &mut Fields, key: &str, constant: &Value) {
    if fields.peek(key) == Some(constant) {
        fields.take(key);
    }
}
