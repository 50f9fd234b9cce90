//! Decodes a stream. Items are matched by id, because not every server sends indexes; a block is numbered by
//! the position of its item, then by its position within the item.

use ir::{
    Block, ChatResponse, Delta, Error, Event, Ext, Fields, Part, PartBody, Phase, ReasoningForm,
    ReasoningOrigin, ToolCall,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::error_body;
use crate::openai_chat::usage;
use crate::openai_responses::response::{head, item_parts};
use crate::openai_responses::{OWN, item_decode};
use crate::stream::{DecodeFrame, truncated, undecodable};

/// Maximum number of parts of one item; further ones are merged into the last.
const PARTS: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct StreamDecoder {
    started: bool,
    items: Vec<Item>,
    /// Blocks that have begun, and those of them that have received a delta.
    begun: Vec<u32>,
    grown: Vec<u32>,
    called: bool,
    done: bool,
}

#[derive(Debug)]
struct Item {
    id: String,
    number: Option<u64>,
    summaries: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FastEvent {
    #[serde(rename = "type")]
    kind: FastEventType,
    #[serde(default)]
    item_id: Option<String>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    content_index: u32,
    #[serde(default)]
    summary_index: u64,
    delta: String,
    #[serde(default, rename = "sequence_number")]
    _sequence_number: IgnoredAny,
    #[serde(default, rename = "logprobs")]
    _logprobs: IgnoredAny,
    #[serde(default, rename = "obfuscation")]
    _obfuscation: IgnoredAny,
}

#[derive(Clone, Copy, Deserialize)]
enum FastEventType {
    #[serde(rename = "response.output_text.delta")]
    Text,
    #[serde(rename = "response.refusal.delta")]
    Refusal,
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments,
    #[serde(rename = "response.reasoning_summary_text.delta")]
    Summary,
    #[serde(rename = "response.reasoning_text.delta")]
    Reasoning,
}

impl DecodeFrame for StreamDecoder {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.done || data.trim() == "[DONE]" {
            return;
        }
        if let Ok(short) = serde_json::from_str::<FastEvent>(data) {
            return self.short(short, out);
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
    /// The position of an item, which is added if it is new.
    fn place(&mut self, id: Option<&str>, number: Option<u64>) -> usize {
        let known = self.items.iter().rposition(|item| match (id, number) {
            (_, Some(number)) => item.number == Some(number),
            (Some(id), None) => item.id == id,
            (None, None) => true,
        });
        known.unwrap_or_else(|| {
            self.items.push(Item {
                id: String::from(id.unwrap_or_default()),
                number,
                summaries: 0,
            });
            self.items.len() - 1
        })
    }

    fn short(&mut self, short: FastEvent, out: &mut Vec<Event>) {
        let place = self.place(short.item_id.as_deref(), short.output_index);
        let first = block_of(place, 0);
        match short.kind {
            FastEventType::Text => {
                let index = block_of(place, short.content_index);
                self.begin(index, Block::Text, out);
                self.grow(index, Delta::Text { text: short.delta }, out);
            }
            FastEventType::Refusal => {
                let index = block_of(place, short.content_index);
                self.begin(index, Block::Refusal, out);
                self.grow(index, Delta::Text { text: short.delta }, out);
            }
            FastEventType::Arguments => self.grow(first, Delta::ToolArguments { json: short.delta }, out),
            FastEventType::Summary => {
                self.begin(first, reasoning_block(ReasoningForm::Summary, short.item_id), out);
                let summaries = self.items.get_mut(place).map(|item| &mut item.summaries);
                if let Some(summaries) = summaries.filter(|seen| **seen < short.summary_index) {
                    *summaries = short.summary_index;
                    self.grow(
                        first,
                        Delta::Reasoning {
                            text: String::from("\n\n"),
                        },
                        out,
                    );
                }
                self.grow(first, Delta::Reasoning { text: short.delta }, out);
            }
            FastEventType::Reasoning => {
                self.begin(first, reasoning_block(ReasoningForm::Text, short.item_id), out);
                self.grow(first, Delta::Reasoning { text: short.delta }, out);
            }
        }
    }

    fn begin(&mut self, index: u32, block: Block, out: &mut Vec<Event>) {
        if !self.begun.contains(&index) {
            self.begun.push(index);
            out.push(Event::BlockStart { index, block });
        }
    }

    fn grow(&mut self, index: u32, delta: Delta, out: &mut Vec<Event>) {
        if self.grown.last() != Some(&index) && !self.grown.contains(&index) {
            self.grown.push(index);
        }
        out.push(Event::BlockDelta { index, delta });
    }

    fn event(&mut self, mut fields: Fields, out: &mut Vec<Event>) {
        let kind = fields.string("type").unwrap_or_default();
        let number = fields.peek("output_index").and_then(Value::as_u64);
        match kind.as_str() {
            "response.created" => {
                let mut response = fields.object("response").unwrap_or_default();
                self.start(&mut response, out);
            }
            "response.output_item.added" => {
                if let Some(item) = fields.take("item") {
                    let id = item.get("id").and_then(Value::as_str).map(String::from);
                    let place = self.add(id, number);
                    self.item_added(place, item, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = fields.take("item") {
                    let id = item.get("id").and_then(Value::as_str).map(String::from);
                    let place = self.place(id.as_deref(), number);
                    self.item_done(place, item, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.finish(fields.object("response").unwrap_or_default(), out);
            }
            "response.failed" => {
                let response = fields.object("response").map(Fields::rest).unwrap_or_default();
                out.extend(usage::reported(response.get("usage"), OWN));
                let error = error_body::from_value(OWN, &Value::Object(response), Phase::MidStream, None);
                let error =
                    error.unwrap_or_else(|| Error::invalid_response(Phase::MidStream, "the answer failed"));
                out.push(Event::Error { error });
            }
            "error" | "" => {
                let whole = Value::Object(fields.clone().rest());
                let wrapped = error_body::from_value(OWN, &whole, Phase::MidStream, None);
                let plain = || error_body::from_fields(OWN, fields, Phase::MidStream, None);
                out.push(Event::Error {
                    error: wrapped.unwrap_or_else(plain),
                });
            }
            _ if redundant(&kind) => {}
            _ => {
                let mut data = fields.rest();
                data.insert(String::from("type"), Value::from(kind.clone()));
                let dialect = String::from(OWN.as_str());
                out.push(Event::VendorSpecific {
                    dialect,
                    name: Some(kind),
                    data: Value::Object(data),
                });
            }
        }
    }

    /// A new item; an item with a known id is the same item.
    fn add(&mut self, id: Option<String>, number: Option<u64>) -> usize {
        let id = id.unwrap_or_default();
        let known = self
            .items
            .iter()
            .position(|item| item.number == number && item.id == id);
        known.unwrap_or_else(|| {
            self.items.push(Item {
                id,
                number,
                summaries: 0,
            });
            self.items.len() - 1
        })
    }

    fn start(&mut self, response: &mut Fields, out: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.started, true) {
            let (id, model) = (response.string("id"), response.string("model"));
            out.push(Event::Started {
                id,
                model,
                created: response.u64("created_at"),
            });
        }
    }

    fn item_added(&mut self, place: usize, item: Value, out: &mut Vec<Event>) {
        let index = block_of(place, 0);
        match item_decode::decode(item).body {
            PartBody::ToolCall(ToolCall { id, name, .. }) => {
                self.called = true;
                self.begin(index, Block::ToolCall { id, name }, out);
            }
            PartBody::Reasoning(_) | PartBody::Unknown { .. } => {}
            _ => {}
        }
    }

    /// A completed item. Emits what was not streamed, and its extra fields.
    fn item_done(&mut self, place: usize, item: Value, out: &mut Vec<Event>) {
        for (at, part) in (0..).zip(item_parts(item)) {
            let index = block_of(place, at);
            let Part { body, ext, .. } = part;
            let has_delta = self.grown.contains(&index);
            match body {
                PartBody::Text(text) => {
                    self.begin(index, Block::Text, out);
                    self.grow_unless(
                        index,
                        has_delta,
                        (!text.is_empty()).then_some(Delta::Text { text }),
                        out,
                    );
                }
                PartBody::Refusal(text) => {
                    self.begin(index, Block::Refusal, out);
                    self.grow_unless(index, has_delta, Some(Delta::Text { text }), out);
                }
                PartBody::ToolCall(call) => {
                    self.called = true;
                    self.begin(
                        index,
                        Block::ToolCall {
                            id: call.id,
                            name: call.name,
                        },
                        out,
                    );
                    self.grow_unless(
                        index,
                        has_delta,
                        Some(Delta::ToolArguments {
                            json: call.arguments_raw,
                        }),
                        out,
                    );
                }
                PartBody::Reasoning(reasoning) => {
                    self.begin(index, reasoning_block(reasoning.form, reasoning.id), out);
                    self.grow_unless(
                        index,
                        has_delta,
                        reasoning.text.map(|text| Delta::Reasoning { text }),
                        out,
                    );
                    if let Some(data) = reasoning.data {
                        self.grow(index, Delta::Sealed { data }, out);
                    }
                }
                PartBody::Media(media) => self.begin(index, Block::Media { media }, out),
                PartBody::Unknown { dialect, raw } => self.begin(index, Block::Unknown { dialect, raw }, out),
                PartBody::ToolResult(_) => continue,
            }
            if !ext.is_empty() {
                out.push(Event::BlockDelta {
                    index,
                    delta: Delta::Meta { ext },
                });
            }
            out.push(Event::BlockEnd { index });
        }
    }

    fn grow_unless(&mut self, index: u32, has_delta: bool, delta: Option<Delta>, out: &mut Vec<Event>) {
        if let (false, Some(delta)) = (has_delta, delta) {
            self.grow(index, delta, out);
        }
    }

    fn finish(&mut self, mut fields: Fields, out: &mut Vec<Event>) {
        self.done = true;
        self.start(&mut fields.clone(), out);
        let output = fields.array("output").unwrap_or_default();
        // Some servers send only the final event; it contains the whole output.
        if self.begun.is_empty() {
            for (place, item) in output.into_iter().enumerate() {
                self.item_done(place, item, out);
            }
        }
        let mut response = ChatResponse::default();
        if self.called {
            response
                .parts
                .push(Part::from(PartBody::ToolCall(ToolCall::default())));
        }
        head(&mut fields, &mut response);
        let ext: Ext = response.ext;
        if !ext.is_empty() {
            out.push(Event::Meta { ext });
        }
        out.extend(response.usage.map(|usage| Event::Usage { usage }));
        out.extend(response.finish_reason.map(|reason| Event::Finish { reason }));
    }
}

fn block_of(place: usize, at: u32) -> u32 {
    let place = u32::try_from(place)
        .unwrap_or(u32::MAX / PARTS)
        .min(u32::MAX / PARTS - 1);
    place * PARTS + at.min(PARTS - 1)
}

fn reasoning_block(form: ReasoningForm, id: Option<String>) -> Block {
    Block::Reasoning {
        form,
        id,
        origin: Some(ReasoningOrigin::dialect(OWN)),
    }
}

/// Events that repeat the content of other events.
fn redundant(kind: &str) -> bool {
    matches!(
        kind,
        "response.in_progress"
            | "response.queued"
            | "response.content_part.added"
            | "response.content_part.done"
            | "response.output_text.done"
            | "response.output_text.delta"
            | "response.output_text.annotation.added"
            | "response.refusal.done"
            | "response.function_call_arguments.done"
            | "response.reasoning_summary_part.added"
            | "response.reasoning_summary_part.done"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_text.done"
    )
}
