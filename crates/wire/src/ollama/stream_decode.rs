//! Decodes a stream. Blocks are numbered by their position in a complete message, not by when they begin:
//! thinking, text, images, then calls. A plain text delta takes a fast path that builds no tree.

use ir::{
    Block, Delta, Error, Event, Ext, Fields, FinishReason, Map, Part, PartBody, Phase, ReasoningForm,
    ReasoningOrigin,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::call_id::CallIds;
use crate::error_body;
use crate::limits::TOOL_CALLS_MAX;
use crate::ollama::response::{created, finish_of};
use crate::ollama::{OWN, message_decode, usage};
use crate::stream::{DecodeFrame, truncated, undecodable};

const THINKING: u32 = 0;
const TEXT: u32 = 1;
const PICTURES: u32 = 16;
const CALLS: u32 = 65_536;

#[derive(Debug)]
pub(crate) struct StreamDecoder {
    started: bool,
    open: Option<u32>,
    begun: Vec<u32>,
    pictures: u32,
    calls: CallIds,
    called: u32,
    /// Metadata that was already emitted, so that repeated values are skipped.
    emitted: Map,
    done: bool,
}

impl Default for StreamDecoder {
    fn default() -> Self {
        Self {
            started: false,
            open: None,
            begun: Vec::new(),
            pictures: 0,
            calls: CallIds::new(OWN),
            called: 0,
            emitted: Map::new(),
            done: false,
        }
    }
}

/// A line with a delta of text or thinking and no new metadata.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastChunk {
    #[serde(default, rename = "model")]
    _model: IgnoredAny,
    #[serde(default, rename = "created_at")]
    _created_at: IgnoredAny,
    message: FastMessage,
    done: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastMessage {
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
}

impl DecodeFrame for StreamDecoder {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.done {
            return;
        }
        if self.started
            && let Ok(FastChunk {
                message, done: false, ..
            }) = serde_json::from_str(data)
        {
            self.thinking(message.thinking.unwrap_or_default(), out);
            return self.text(message.content.unwrap_or_default(), out);
        }
        match serde_json::from_str(data) {
            Ok(value) => self.line(value, out),
            Err(why) => out.push(undecodable(OWN, &why)),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        if !self.done {
            out.push(truncated());
        }
    }
}

impl StreamDecoder {
    fn line(&mut self, value: Value, out: &mut Vec<Event>) {
        if let Some(error) = error_body::from_value(OWN, &value, Phase::MidStream, None) {
            return out.push(Event::Error { error });
        }
        let Some(mut fields) = Fields::of(value) else {
            return;
        };
        let model = fields.string("model");
        let mut ext = Ext::default();
        if !std::mem::replace(&mut self.started, true) {
            self.calls = message_decode::calls_of(fields.peek_str("created_at"));
            let created = created(&mut fields, &mut ext);
            out.push(Event::Started {
                id: None,
                model,
                created,
            });
            if !ext.is_empty() {
                out.push(Event::Meta { ext });
            }
        }
        fields.take("created_at");
        if let Some(mut message) = fields.object("message") {
            self.message(&mut message, out);
            fields.keep("message", message);
        }
        if let Some(usage) = usage::take(&mut fields) {
            out.push(Event::Usage { usage });
        }
        let done = fields.take("done") == Some(Value::Bool(true));
        let reason = fields.string("done_reason");
        self.emit_metadata(fields.rest(), out);
        if done {
            self.done = true;
            self.close(out);
            let called = self.called > 0;
            let reason = reason.map_or(FinishReason::Stop, |word| finish_of(&word, called));
            out.push(Event::Finish { reason });
        }
    }

    /// Emits metadata that has changed. Lists are always emitted: each line contains the next members.
    fn emit_metadata(&mut self, mut rest: Map, out: &mut Vec<Event>) {
        rest.retain(|key, value| value.is_array() || self.emitted.get(key) != Some(value));
        if !rest.is_empty() {
            let facts = rest.iter().filter(|(_, value)| !value.is_array());
            self.emitted
                .extend(facts.map(|(key, value)| (key.clone(), value.clone())));
            out.extend(ir::fold::meta(OWN, rest));
        }
    }

    fn message(&mut self, message: &mut Fields, out: &mut Vec<Event>) {
        if message.peek("role") == Some(&json!("assistant")) {
            message.take("role");
        }
        let mut notes = Ext::default();
        for part in message_decode::parts(message, &mut notes, &mut self.calls) {
            self.part(part, out);
        }
        for key in ["content", "thinking", "images", "tool_calls"] {
            let empty = |value: &Value| value.is_null() || *value == json!("") || *value == json!([]);
            if message.peek(key).is_some_and(empty) {
                message.take(key);
            }
        }
    }

    fn part(&mut self, part: Part, out: &mut Vec<Event>) {
        let Part { body, ext, .. } = part;
        match body {
            PartBody::Text(text) => self.text(text, out),
            PartBody::Reasoning(reasoning) => self.thinking(reasoning.text.unwrap_or_default(), out),
            PartBody::Media(media) if self.pictures < CALLS - PICTURES => {
                let index = PICTURES + self.pictures;
                self.pictures += 1;
                self.begin(index, Block::Media { media }, out);
            }
            PartBody::ToolCall(call) if self.more_calls() => {
                let index = CALLS + self.called - 1;
                let block = Block::ToolCall {
                    id: call.id,
                    name: call.name,
                };
                self.begin(index, block, out);
                let json = call.arguments_raw;
                let arguments = Delta::ToolArguments { json };
                out.push(Event::BlockDelta {
                    index,
                    delta: arguments,
                });
                meta(index, ext, out);
            }
            PartBody::Unknown { dialect, raw } if self.more_calls() => {
                let index = CALLS + self.called - 1;
                self.begin(index, Block::Unknown { dialect, raw }, out);
                meta(index, ext, out);
            }
            _ => {
                let message = "the stream contains too many calls or images";
                let error = Error::invalid_response(Phase::MidStream, message);
                out.push(Event::Error { error });
            }
        }
    }

    fn more_calls(&mut self) -> bool {
        let more = usize::try_from(self.called).is_ok_and(|called| called < TOOL_CALLS_MAX);
        self.called += u32::from(more);
        more
    }

    fn text(&mut self, text: String, out: &mut Vec<Event>) {
        if !text.is_empty() {
            self.begin(TEXT, Block::Text, out);
            out.push(Event::text(TEXT, text));
        }
    }

    fn thinking(&mut self, text: String, out: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        if !self.begun.contains(&THINKING) {
            let block = Block::Reasoning {
                form: ReasoningForm::Text,
                id: None,
                origin: Some(ReasoningOrigin::dialect(OWN)),
            };
            self.begin(THINKING, block, out);
        }
        out.push(Event::BlockDelta {
            index: THINKING,
            delta: Delta::Reasoning { text },
        });
    }

    /// Begins a block unless it has begun; ends the previous one.
    fn begin(&mut self, index: u32, block: Block, out: &mut Vec<Event>) {
        if self.begun.contains(&index) {
            return;
        }
        self.close(out);
        // Only these two can recur.
        if index <= TEXT {
            self.begun.push(index);
        }
        self.open = Some(index);
        out.push(Event::BlockStart { index, block });
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        out.extend(self.open.take().map(|index| Event::BlockEnd { index }));
    }
}

fn meta(index: u32, ext: Ext, out: &mut Vec<Event>) {
    if !ext.is_empty() {
        out.push(Event::BlockDelta {
            index,
            delta: Delta::Meta { ext },
        });
    }
}
