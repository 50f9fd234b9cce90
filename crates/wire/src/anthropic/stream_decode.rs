//! Decodes a stream. Blocks unknown to the IR are buffered until they are complete.

use ir::{
    Block, Delta, Error, Event, Ext, Fields, FinishReason, Map, Part, PartBody, Phase, ReasoningForm,
    ReasoningOrigin,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::anthropic::response::finish_of;
use crate::anthropic::{OWN, block_decode, usage};
use crate::error_body;
use crate::limits::EVENT_BYTES_MAX;
use crate::stream::{DecodeFrame, truncated, undecodable};

#[derive(Debug, Default)]
pub(crate) struct StreamDecoder {
    id: Option<String>,
    started: bool,
    content: bool,
    /// Calls without any argument delta so far.
    empty_calls: Vec<u32>,
    held: Vec<UnknownBlock>,
    usage: Map,
    finish: Option<FinishReason>,
    done: bool,
}

/// A block of an unknown type, as received so far.
#[derive(Debug)]
struct UnknownBlock {
    index: u32,
    raw: Map,
    json: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastEvent {
    #[serde(rename = "type")]
    kind: FastEventType,
    index: u32,
    delta: FastDelta,
}

#[derive(Deserialize)]
enum FastEventType {
    #[serde(rename = "content_block_delta")]
    Delta,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum FastDelta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    Json { partial_json: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
}

impl DecodeFrame for StreamDecoder {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.done {
            return;
        }
        if let Ok(FastEvent {
            kind: FastEventType::Delta,
            index,
            delta,
        }) = serde_json::from_str(data)
        {
            return self.short(index, delta, out);
        }
        match serde_json::from_str::<Value>(data) {
            Ok(Value::Object(map)) => self.event(Fields::new(map), out),
            Ok(_) => {}
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
    fn short(&mut self, index: u32, delta: FastDelta, out: &mut Vec<Event>) {
        self.content = true;
        let delta = match delta {
            FastDelta::Text { text } => Delta::Text { text },
            FastDelta::Thinking { thinking } => Delta::Reasoning { text: thinking },
            FastDelta::Signature { signature } => Delta::Signature { signature },
            FastDelta::Json { partial_json } => {
                if let Some(held) = self.held.iter_mut().find(|held| held.index == index) {
                    return grow(&mut held.json, &partial_json, out);
                }
                if partial_json.is_empty() {
                    return;
                }
                self.empty_calls.retain(|call| *call != index);
                Delta::ToolArguments { json: partial_json }
            }
        };
        out.push(Event::BlockDelta { index, delta });
    }

    fn event(&mut self, mut fields: Fields, out: &mut Vec<Event>) {
        let kind = fields.string("type").unwrap_or_default();
        let index = fields.u32("index").unwrap_or_default();
        match kind.as_str() {
            "message_start" => self.message_start(fields.object("message").unwrap_or_default(), out),
            "content_block_start" => {
                self.block_start(index, fields.take("content_block").unwrap_or_default(), out);
            }
            "content_block_delta" => self.block_delta(index, fields.object("delta").unwrap_or_default(), out),
            "content_block_stop" => self.block_stop(index, out),
            "message_delta" => self.message_delta(fields, out),
            "message_stop" => {
                self.done = true;
                let reason = self.finish.take().unwrap_or(FinishReason::Stop);
                out.push(Event::Finish { reason });
            }
            "ping" => {}
            _ => {
                let mut whole = Map::new();
                whole.insert(String::from("type"), json!(kind));
                whole.extend(fields.rest());
                let value = Value::Object(whole);
                match error_body::from_value(OWN, &value, Phase::MidStream, None) {
                    Some(error) => out.push(Event::Error { error }),
                    None => out.push(Event::VendorSpecific {
                        dialect: String::from(OWN.as_str()),
                        name: Some(kind),
                        data: value,
                    }),
                }
            }
        }
    }

    fn message_start(&mut self, mut message: Fields, out: &mut Vec<Event>) {
        let id = message.string("id");
        if self.started {
            // Some servers send `message_start` twice. After content, a second one starts another response.
            if self.content || id != self.id {
                let message = "the provider started a second message inside the first";
                out.push(Event::Error {
                    error: Error::invalid_response(Phase::MidStream, message),
                });
            }
            return;
        }
        self.started = true;
        self.id.clone_from(&id);
        out.push(Event::Started {
            id,
            model: message.string("model"),
            created: None,
        });
        self.report(message.object("usage"), out);
        for key in ["type", "role", "content", "stop_reason"] {
            message.take(key);
        }
        if let Some(meta) = ir::fold::meta(OWN, message.rest()) {
            out.push(meta);
        }
    }

    /// Counts so far. Later ones replace earlier ones, key by key.
    fn report(&mut self, usage: Option<Fields>, out: &mut Vec<Event>) {
        if let Some(usage) = usage {
            self.usage.extend(usage.rest());
            let usage = usage::decode(&Value::Object(self.usage.clone()));
            out.push(Event::Usage { usage });
        }
    }

    fn message_delta(&mut self, mut fields: Fields, out: &mut Vec<Event>) {
        let mut delta = fields.object("delta").unwrap_or_default();
        if let Some(word) = delta.string("stop_reason") {
            self.finish = Some(finish_of(&word));
        }
        delta.take("stop_reason");
        self.report(fields.object("usage"), out);
        let mut rest = delta.rest();
        rest.extend(fields.rest());
        if let Some(meta) = ir::fold::meta(OWN, rest) {
            out.push(meta);
        }
    }

    fn block_start(&mut self, index: u32, raw: Value, out: &mut Vec<Event>) {
        self.content = true;
        let origin = Some(ReasoningOrigin::dialect(OWN));
        let Part { body, ext, .. } = block_decode::decode(raw.clone());
        let (block, first) = match body {
            PartBody::Text(text) => (Block::Text, (!text.is_empty()).then_some(Delta::Text { text })),
            PartBody::Reasoning(reasoning) => {
                let block = Block::Reasoning {
                    form: reasoning.form,
                    id: None,
                    origin,
                };
                let first = match (reasoning.form, reasoning.data, reasoning.text) {
                    (ReasoningForm::Redacted, Some(data), _) => Some(Delta::Sealed { data }),
                    (_, _, Some(text)) => Some(Delta::Reasoning { text }),
                    _ => None,
                };
                out.push(Event::BlockStart { index, block });
                out.extend(first.map(|delta| Event::BlockDelta { index, delta }));
                let signature = reasoning.signature.filter(|signature| !signature.is_empty());
                let signature = signature.map(|signature| Delta::Signature { signature });
                out.extend(signature.map(|delta| Event::BlockDelta { index, delta }));
                return;
            }
            PartBody::ToolCall(call) => {
                let given = call.object().is_some_and(|map| !map.is_empty());
                if !given {
                    self.empty_calls.push(index);
                }
                let json = call.arguments_raw;
                (
                    Block::ToolCall {
                        id: call.id,
                        name: call.name,
                    },
                    given.then_some(Delta::ToolArguments { json }),
                )
            }
            PartBody::Media(media) => (Block::Media { media }, None),
            _ => {
                let Value::Object(raw) = raw else { return };
                return self.held.push(UnknownBlock {
                    index,
                    raw,
                    json: String::new(),
                });
            }
        };
        out.push(Event::BlockStart { index, block });
        out.extend(first.map(|delta| Event::BlockDelta { index, delta }));
        if !ext.is_empty() {
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Meta { ext },
            });
        }
    }

    fn block_delta(&mut self, index: u32, mut delta: Fields, out: &mut Vec<Event>) {
        let kind = delta.string("type").unwrap_or_default();
        if let Some(held) = self.held.iter_mut().find(|held| held.index == index) {
            for (key, value) in delta.rest() {
                match (held.raw.get_mut(&key), value) {
                    (Some(Value::String(text)), Value::String(piece)) => grow(text, &piece, out),
                    (_, value) => {
                        held.raw.insert(key, value);
                    }
                }
            }
            return;
        }
        if kind == "citations_delta" {
            let value = delta.take("citation").unwrap_or_default();
            let delta = Delta::Annotation {
                dialect: OWN,
                list: String::from("citations"),
                value,
            };
            return out.push(Event::BlockDelta { index, delta });
        }
        let mut rest = delta.rest();
        for (key, make) in [
            ("text", (|text| Delta::Text { text }) as fn(String) -> Delta),
            ("thinking", |text| Delta::Reasoning { text }),
            ("signature", |signature| Delta::Signature { signature }),
            ("partial_json", |json| Delta::ToolArguments { json }),
        ] {
            if let Some(Value::String(piece)) = rest.shift_remove(key) {
                out.push(Event::BlockDelta {
                    index,
                    delta: make(piece),
                });
            }
        }
        if !rest.is_empty() {
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Meta {
                    ext: Ext::of(OWN, rest),
                },
            });
        }
    }

    fn block_stop(&mut self, index: u32, out: &mut Vec<Event>) {
        if let Some(at) = self.held.iter().position(|held| held.index == index) {
            let mut held = self.held.swap_remove(at);
            if let Ok(input) = serde_json::from_str(&held.json) {
                held.raw.insert(String::from("input"), input);
            }
            let block = Block::Unknown {
                dialect: String::from(OWN.as_str()),
                raw: Value::Object(held.raw),
            };
            out.push(Event::BlockStart { index, block });
        }
        if self.empty_calls.contains(&index) {
            self.empty_calls.retain(|call| *call != index);
            let delta = Delta::ToolArguments {
                json: String::from("{}"),
            };
            out.push(Event::BlockDelta { index, delta });
        }
        out.push(Event::BlockEnd { index });
    }
}

/// Appends to the buffered block, up to the size limit of one event.
fn grow(text: &mut String, piece: &str, out: &mut Vec<Event>) {
    if text.len() + piece.len() > EVENT_BYTES_MAX {
        let error =
            Error::invalid_response(Phase::MidStream, "the stream contains a block that is too large");
        out.push(Event::Error { error });
    } else {
        text.push_str(piece);
    }
}
