//! Decodes a stream. Blocks are numbered by their position in a complete message, not by when they begin:
//! reasoning, text, refusal, audio, images, then calls. A plain text delta takes a fast path that builds no
//! tree; all other chunks are parsed completely.

use ir::event::Warning;
use ir::media::Base64;
use ir::{
    Block, Delta, Event, Ext, Fields, FinishReason, Map, Media, MediaKind, MediaSource, PartBody, Phase,
    ReasoningForm, ReasoningOrigin,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::error_body;
use crate::limits::TOOL_CALLS_MAX;
use crate::openai_chat::message_decode::thought;
use crate::openai_chat::response::{drop_constant, finish_of};
use crate::openai_chat::{OWN, decode_part, usage};
use crate::stream::{DecodeFrame, truncated, undecodable};

const REASONING: u32 = 0;
const TEXT: u32 = 1;
const REFUSAL: u32 = 2;
const SOUND: u32 = 3;
const PICTURES: u32 = 16;
const CALLS: u32 = 1024;

#[derive(Debug, Default)]
pub(crate) struct StreamDecoder {
    started: bool,
    open: Vec<u32>,
    begun: Vec<u32>,
    /// The provider's index and id of every call, in order of their blocks.
    calls: Vec<(u64, String)>,
    pictures: u32,
    /// Metadata that was already emitted, so that repeated values are skipped.
    emitted: Map,
    finish: Option<FinishReason>,
    warned: bool,
    done: bool,
}

/// A chunk with a delta of text, reasoning or arguments and no new metadata.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastChunk {
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    #[serde(default, rename = "object")]
    _object: IgnoredAny,
    #[serde(default, rename = "created")]
    _created: IgnoredAny,
    #[serde(default, rename = "model")]
    _model: IgnoredAny,
    #[serde(default, rename = "system_fingerprint")]
    _system_fingerprint: IgnoredAny,
    #[serde(default, rename = "service_tier")]
    _service_tier: IgnoredAny,
    #[serde(default, rename = "obfuscation")]
    _obfuscation: IgnoredAny,
    #[serde(default, rename = "usage")]
    _usage: (),
    choices: (FastChoice,),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastChoice {
    index: u64,
    delta: FastDelta,
    #[serde(default, rename = "logprobs")]
    _logprobs: (),
    #[serde(default, rename = "finish_reason")]
    _finish_reason: (),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastDelta {
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
    #[serde(default, rename = "refusal")]
    _refusal: (),
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
}

impl DecodeFrame for StreamDecoder {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.done {
            return;
        }
        if data.trim() == "[DONE]" {
            return self.close(out);
        }
        if self.started
            && let Ok(FastChunk {
                choices: (FastChoice { index: 0, delta, .. },),
                ..
            }) = serde_json::from_str(data)
        {
            if let Some(text) = delta.reasoning_content {
                self.reasoning(text, None, out);
            }
            if let Some(text) = delta.content {
                self.text(TEXT, &Block::Text, text, out);
            }
            return;
        }
        match serde_json::from_str(data) {
            Ok(value) => self.chunk(value, out),
            Err(why) => out.push(undecodable(OWN, &why)),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        if self.done {
            return;
        }
        // Some servers omit the end marker; a finish reason is sufficient.
        if self.finish.is_some() {
            self.close(out);
        } else {
            out.push(truncated());
        }
    }
}

impl StreamDecoder {
    fn close(&mut self, out: &mut Vec<Event>) {
        self.done = true;
        self.end_open(out);
        let reason = self.finish.take().unwrap_or(FinishReason::Stop);
        out.push(Event::Finish { reason });
    }

    fn chunk(&mut self, value: Value, out: &mut Vec<Event>) {
        if let Some(error) = error_body::from_value(OWN, &value, Phase::MidStream, None) {
            out.extend(usage::reported(value.get("usage"), OWN));
            return out.push(Event::Error { error });
        }
        let Some(mut fields) = Fields::of(value) else {
            return;
        };
        let id = fields.string("id").filter(|id| !id.is_empty());
        let model = fields.string("model").filter(|model| !model.is_empty());
        let created = fields.u64("created").filter(|created| *created > 0);
        let choices = fields.array("choices").unwrap_or_default();
        if !self.started && (id.is_some() || !choices.is_empty()) {
            self.started = true;
            out.push(Event::Started { id, model, created });
        }
        fields.take("object");
        fields.take("obfuscation");
        let usage = fields.object("usage").map(|usage| Value::Object(usage.rest()));
        for choice in choices.into_iter().filter_map(Fields::of) {
            self.choice(choice, &mut fields, out);
        }
        // It includes the output of the same chunk.
        out.extend(usage::reported(usage.as_ref(), OWN));
        self.emit_metadata(fields.rest(), out);
    }

    /// Emits metadata that has changed.
    fn emit_metadata(&mut self, mut rest: Map, out: &mut Vec<Event>) {
        rest.retain(|key, value| self.emitted.get(key) != Some(value));
        if !rest.is_empty() {
            self.emitted.extend(rest.clone());
            out.push(Event::Meta {
                ext: Ext::of(OWN, rest),
            });
        }
    }

    fn choice(&mut self, mut choice: Fields, top: &mut Fields, out: &mut Vec<Event>) {
        if choice.peek("index").and_then(Value::as_u64).unwrap_or(0) > 0 {
            if !std::mem::replace(&mut self.warned, true) {
                let message = "the stream contains several choices; only the first is used";
                out.push(Event::Warning {
                    warning: Warning::new("further_choices_dropped", message),
                });
            }
            return;
        }
        drop_constant(&mut choice, "index", &json!(0));
        let mut delta = choice
            .object("delta")
            .or_else(|| choice.object("message"))
            .unwrap_or_default();
        drop_constant(&mut delta, "role", &json!("assistant"));
        self.delta(&mut delta, out);
        self.logprobs(&mut choice, out);
        if let Some(word) = choice.string("finish_reason") {
            let mut ext = Ext::default();
            self.finish = Some(finish_of(&word, &mut ext));
            if !ext.is_empty() {
                out.push(Event::Meta { ext });
            }
        }
        if !delta.is_empty() {
            let rest = Ext::of(
                OWN,
                Map::from_iter([(String::from("message"), Value::Object(delta.rest()))]),
            );
            let rest = rest.without_notes();
            if !rest.is_empty() {
                out.push(Event::Meta { ext: rest });
            }
        }
        choice.take("finish_reason");
        if !choice.is_empty() {
            top.put_back("choice", Value::Object(choice.rest()));
        }
    }

    fn delta(&mut self, delta: &mut Fields, out: &mut Vec<Event>) {
        for key in ["reasoning_content", "reasoning"] {
            if let Some(text) = delta.string(key) {
                self.reasoning(text, (key == "reasoning").then_some(key), out);
                break;
            }
        }
        match delta.take("content") {
            Some(Value::String(text)) => self.text(TEXT, &Block::Text, text, out),
            Some(Value::Array(list)) => self.content_parts(list, out),
            _ => {}
        }
        if let Some(text) = delta.string("refusal") {
            self.text(REFUSAL, &Block::Refusal, text, out);
        }
        if let Some(audio) = delta.object("audio") {
            self.sound(audio, out);
        }
        for image in delta.array("images").unwrap_or_default() {
            if let PartBody::Media(media) = decode_part(image, OWN).body {
                let index = PICTURES + self.pictures;
                self.pictures += 1;
                self.begin(index, Block::Media { media }, out);
            }
        }
        for call in delta.array("tool_calls").unwrap_or_default() {
            if let Some(call) = Fields::of(call) {
                self.call(call, out);
            }
        }
    }

    fn content_parts(&mut self, list: Vec<Value>, out: &mut Vec<Event>) {
        for part in list {
            let part = thought(decode_part(part, OWN));
            match part.body {
                PartBody::Text(text) => self.text(TEXT, &Block::Text, text, out),
                PartBody::Reasoning(reasoning) => {
                    self.reasoning(reasoning.text.unwrap_or_default(), Some("thinking"), out);
                }
                PartBody::Unknown { dialect, raw } => {
                    let index = PICTURES + self.pictures;
                    self.pictures += 1;
                    self.begin(index, Block::Unknown { dialect, raw }, out);
                }
                _ => {}
            }
        }
    }

    fn text(&mut self, index: u32, block: &Block, text: String, out: &mut Vec<Event>) {
        if !text.is_empty() {
            self.begin(index, block.clone(), out);
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Text { text },
            });
        }
    }

    fn reasoning(&mut self, text: String, key: Option<&str>, out: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        let block = Block::Reasoning {
            form: ReasoningForm::Text,
            id: None,
            origin: Some(ReasoningOrigin::dialect(OWN)),
        };
        if self.begin(REASONING, block, out)
            && let Some(key) = key
        {
            let mut ext = Ext::default();
            ext.set(OWN, "$key", key);
            out.push(Event::BlockDelta {
                index: REASONING,
                delta: Delta::Meta { ext },
            });
        }
        out.push(Event::BlockDelta {
            index: REASONING,
            delta: Delta::Reasoning { text },
        });
    }

    fn sound(&mut self, mut audio: Fields, out: &mut Vec<Event>) {
        let empty = Media::new(MediaSource::Inline(Base64::from_text("")), None).with_kind(MediaKind::Audio);
        self.begin(
            SOUND,
            Block::Media {
                media: Box::new(empty),
            },
            out,
        );
        let mut push = |delta| out.push(Event::BlockDelta { index: SOUND, delta });
        if let Some(base64) = audio.string("data") {
            push(Delta::Data { base64 });
        }
        if let Some(text) = audio.string("transcript") {
            push(Delta::Text { text });
        }
        if !audio.is_empty() {
            push(Delta::Meta {
                ext: Ext::of(OWN, audio.rest()),
            });
        }
    }

    fn logprobs(&mut self, choice: &mut Fields, out: &mut Vec<Event>) {
        if !self.begun.contains(&TEXT) {
            return;
        }
        let Some(mut logprobs) = choice.object("logprobs") else {
            return;
        };
        for value in logprobs.array("content").unwrap_or_default() {
            let delta = Delta::Annotation {
                dialect: OWN,
                list: String::from("logprobs"),
                value,
            };
            out.push(Event::BlockDelta { index: TEXT, delta });
        }
        choice.keep("logprobs", logprobs);
    }

    /// A delta of a call. A new call has a new index or a new id: not every server sends indexes.
    fn call(&mut self, mut call: Fields, out: &mut Vec<Event>) {
        let number = call.u64("index").unwrap_or(0);
        let id = call.string("id").filter(|id| !id.is_empty());
        let kind = call.string("type").filter(|kind| kind != "function");
        let word = kind.as_deref().unwrap_or("function");
        let mut inner = call.object(word).unwrap_or_default();
        let name = inner.string("name").filter(|name| !name.is_empty());
        let json = inner.string(if word == "function" { "arguments" } else { "input" });
        let known = self.calls.iter().rposition(|(at, known)| {
            *at == number && (id.is_none() || name.is_none() || id.as_deref() == Some(known))
        });
        let at = match known {
            Some(at) => at,
            None if self.calls.len() >= TOOL_CALLS_MAX => return,
            None => {
                let id = id.unwrap_or_default();
                self.calls.push((number, id.clone()));
                let at = self.calls.len() - 1;
                let index = block_of(at);
                self.begin(
                    index,
                    Block::ToolCall {
                        id,
                        name: name.unwrap_or_default(),
                    },
                    out,
                );
                if let Some(kind) = &kind {
                    let mut ext = Ext::default();
                    ext.set(OWN, "$type", kind.as_str());
                    out.push(Event::BlockDelta {
                        index,
                        delta: Delta::Meta { ext },
                    });
                }
                at
            }
        };
        let index = block_of(at);
        if let Some(json) = json.filter(|json| !json.is_empty()) {
            out.push(Event::BlockDelta {
                index,
                delta: Delta::ToolArguments { json },
            });
        }
        call.keep(word, inner);
        if !call.is_empty() {
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Meta {
                    ext: Ext::of(OWN, call.rest()),
                },
            });
        }
    }

    /// Begins a block unless it has begun; ends the previous one. Returns whether it was new.
    fn begin(&mut self, index: u32, block: Block, out: &mut Vec<Event>) -> bool {
        if self.begun.contains(&index) {
            return false;
        }
        self.end_open(out);
        self.begun.push(index);
        self.open.push(index);
        out.push(Event::BlockStart { index, block });
        true
    }

    fn end_open(&mut self, out: &mut Vec<Event>) {
        out.extend(self.open.drain(..).map(|index| Event::BlockEnd { index }));
    }
}

fn block_of(call: usize) -> u32 {
    CALLS + u32::try_from(call).unwrap_or(u32::MAX - CALLS)
}
