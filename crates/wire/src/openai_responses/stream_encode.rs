//! Encodes a stream. The last event contains the whole response, so the events are folded on the way.

use ir::{Block, Component, Delta, Event, Fold, Ledger, Map, Part, PartBody, ReasoningForm, Role};
use serde_json::{Value, json};

use crate::openai_chat::encode_error;
use crate::openai_responses::item_encode::{EncodedPart, Purpose, encode as encode_part};
use crate::openai_responses::response_defaults::{complete, complete_item, complete_part};
use crate::openai_responses::{OWN, response};
use crate::stream::{EncodeEvent, write_sse};

#[derive(Debug, Default)]
pub(crate) struct StreamEncoder {
    fold: Fold,
    head: Value,
    /// Response metadata that arrived before the start event.
    before: Map,
    number: u64,
    /// Blocks in the order of their items, with their content so far.
    items: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    index: u32,
    block: Block,
    id: String,
    fold: Fold,
    ended: bool,
}

impl EncodeEvent for StreamEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match event {
            Event::Started { id, model, created } => {
                self.head = json!({
                    "id": id.as_deref().unwrap_or_default(), "object": "response", "status": "in_progress",
                    "created_at": created.unwrap_or_default(), "model": model.as_deref().unwrap_or_default(),
                    "output": [], "error": null, "incomplete_details": null,
                });
                if let Some(head) = self.head.as_object_mut() {
                    head.append(&mut self.before);
                }
                for kind in ["response.created", "response.in_progress"] {
                    let event = json!({"response": self.head});
                    self.write(kind, event, out);
                }
            }
            Event::BlockStart { index, block } => self.start(*index, block, out),
            Event::BlockDelta { index, delta } => self.delta(*index, delta, out),
            Event::BlockEnd { index } => self.close(*index, out),
            Event::VendorSpecific { dialect, name, data } if dialect == OWN.as_str() => {
                write_sse(out, name.as_deref().unwrap_or_default(), data);
            }
            Event::VendorSpecific { dialect, .. } => {
                ledger.dropped(format!("/events/{dialect}"), format!("not supported by {OWN}"));
            }
            Event::Error { error } => {
                let body = encode_error(error);
                let mut event = body.get("error").cloned().unwrap_or_default();
                event["param"] = Value::Null;
                event.as_object_mut().map(|map| map.shift_remove("type"));
                event["code"] = json!(word_of(error));
                self.write("error", event, out);
            }
            Event::Meta { ext } if self.head.is_null() => ext.restore(OWN, &mut self.before),
            // Clients of this dialect cannot request raw events.
            Event::Finish { .. }
            | Event::Usage { .. }
            | Event::Meta { .. }
            | Event::Warning { .. }
            | Event::Raw { .. } => {}
        }
        self.fold.push(event.clone());
        if matches!(event, Event::Finish { .. }) {
            // Losses of the whole response are recorded once, at the end.
            if let Ok(whole) = self.fold.clone().finish() {
                response::encode(&whole, ledger).ok();
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        for index in self.items.iter().map(|item| item.index).collect::<Vec<_>>() {
            self.close(index, out);
        }
        let Ok(whole) = std::mem::take(&mut self.fold).finish() else {
            return;
        };
        let mut ledger = Ledger::new(Component::Adapter);
        let Ok(mut response) = response::encode(&whole, &mut ledger) else {
            return;
        };
        complete(&mut response);
        let complete = response["status"] == "completed";
        let kind = if complete {
            "response.completed"
        } else {
            "response.incomplete"
        };
        self.write(kind, json!({"response": response}), out);
    }
}

/// The vendor's error code for the error.
fn word_of(error: &ir::Error) -> &str {
    match error.kind {
        ir::ErrorKind::RateLimited => "rate_limit_exceeded",
        ir::ErrorKind::Auth => "authentication_error",
        ir::ErrorKind::InvalidRequest | ir::ErrorKind::ModelRequired | ir::ErrorKind::Unsupported => {
            "invalid_request_error"
        }
        ir::ErrorKind::ContextWindow => "context_length_exceeded",
        ir::ErrorKind::Quota => "insufficient_quota",
        ir::ErrorKind::Timeout => "timeout",
        ir::ErrorKind::ContentPolicy => "content_policy_violation",
        _ => "server_error",
    }
}

impl StreamEncoder {
    fn write(&mut self, kind: &str, mut event: Value, out: &mut Vec<u8>) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.number);
        self.number += 1;
        write_sse(out, kind, &event);
    }

    fn start(&mut self, index: u32, block: &Block, out: &mut Vec<u8>) {
        let at = self.items.len();
        let (word, id) = match block {
            Block::Text | Block::Refusal => ("message", format!("msg_{at}")),
            Block::Reasoning { id, .. } => ("reasoning", id.clone().unwrap_or_else(|| String::from("rs_0"))),
            Block::ToolCall { .. } => ("function_call", format!("fc_{at}")),
            Block::Media { .. } | Block::Unknown { .. } => ("", format!("item_{at}")),
        };
        let mut fold = Fold::new();
        fold.push(Event::BlockStart {
            index: 0,
            block: block.clone(),
        });
        self.items.push(Open {
            index,
            block: block.clone(),
            id: id.clone(),
            fold,
            ended: false,
        });
        let mut item = json!({"id": id, "type": word, "status": "in_progress"});
        match block {
            Block::Text | Block::Refusal => {
                item["role"] = json!("assistant");
                item["content"] = json!([]);
            }
            Block::Reasoning { .. } => item["summary"] = json!([]),
            Block::ToolCall { id, name } => {
                item["call_id"] = json!(id);
                item["name"] = json!(name);
                item["arguments"] = json!("");
            }
            Block::Media { .. } | Block::Unknown { .. } => return,
        }
        self.write(
            "response.output_item.added",
            json!({"output_index": at, "item": item}),
            out,
        );
        if let Block::Text | Block::Refusal = block {
            let part = match block {
                Block::Text => json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []}),
                _ => json!({"type": "refusal", "refusal": ""}),
            };
            let event = json!({"item_id": id, "output_index": at, "content_index": 0, "part": part});
            self.write("response.content_part.added", event, out);
        }
        if let Block::Reasoning {
            form: ReasoningForm::Summary,
            ..
        } = block
        {
            let part = json!({"type": "summary_text", "text": ""});
            let event = json!({"item_id": id, "output_index": at, "summary_index": 0, "part": part});
            self.write("response.reasoning_summary_part.added", event, out);
        }
    }

    fn delta(&mut self, index: u32, delta: &Delta, out: &mut Vec<u8>) {
        let Some(at) = self.items.iter().rposition(|item| item.index == index) else {
            return;
        };
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        item.fold.push(Event::BlockDelta {
            index: 0,
            delta: delta.clone(),
        });
        let id = item.id.clone();
        let (kind, text, place) = match (delta, &item.block) {
            (Delta::Text { text }, Block::Text) => ("response.output_text.delta", text, "content_index"),
            (Delta::Text { text }, Block::Refusal) => ("response.refusal.delta", text, "content_index"),
            (Delta::ToolArguments { json }, _) => ("response.function_call_arguments.delta", json, ""),
            (
                Delta::Reasoning { text },
                Block::Reasoning {
                    form: ReasoningForm::Summary,
                    ..
                },
            ) => ("response.reasoning_summary_text.delta", text, "summary_index"),
            (Delta::Reasoning { text }, _) => ("response.reasoning_text.delta", text, "content_index"),
            _ => return,
        };
        let mut event = json!({"item_id": id, "output_index": at, "delta": text});
        if !place.is_empty() {
            event[place] = json!(0);
        }
        if kind == "response.output_text.delta" {
            event["logprobs"] = json!([]);
        }
        self.write(kind, event, out);
    }

    /// Emits the completed item in its final form.
    fn close(&mut self, index: u32, out: &mut Vec<u8>) {
        let Some(at) = self
            .items
            .iter()
            .rposition(|item| item.index == index && !item.ended)
        else {
            return;
        };
        let Some(open) = self.items.get_mut(at) else {
            return;
        };
        open.ended = true;
        let id = open.id.clone();
        let Ok(mut whole) = std::mem::take(&mut open.fold).finish() else {
            return;
        };
        let Some(part) = whole.parts.pop() else { return };
        self.repeat(&part, &id, at, out);
        let mut ledger = Ledger::new(Component::Adapter);
        let written = encode_part(&part, Role::Assistant, Purpose::Show, "", &mut ledger);
        let mut item = match written {
            Ok(EncodedPart::Item(item)) => with_id(item, &part, &id),
            Ok(EncodedPart::Content(content)) => {
                json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [content]})
            }
            _ => return,
        };
        complete_item(&mut item, at);
        self.write(
            "response.output_item.done",
            json!({"output_index": at, "item": item}),
            out,
        );
    }
}

impl StreamEncoder {
    /// Repeats a part as a whole, as the vendor does before the end of the item.
    fn repeat(&mut self, part: &Part, id: &str, at: usize, out: &mut Vec<u8>) {
        let event = |index: &str, key: &str, text: &str| json!({"item_id": id, "output_index": at, index: 0, key: text});
        match &part.body {
            PartBody::Text(text) => {
                let mut done = event("content_index", "text", text);
                done["logprobs"] = json!([]);
                self.write("response.output_text.done", done, out);
                let mut whole = json!({"type": "output_text", "text": text});
                complete_part(&mut whole);
                let done = json!({"item_id": id, "output_index": at, "content_index": 0, "part": whole});
                self.write("response.content_part.done", done, out);
            }
            PartBody::Refusal(text) => {
                let done = event("content_index", "refusal", text);
                self.write("response.refusal.done", done, out);
                let whole = json!({"type": "refusal", "refusal": text});
                let done = json!({"item_id": id, "output_index": at, "content_index": 0, "part": whole});
                self.write("response.content_part.done", done, out);
            }
            PartBody::ToolCall(call) => {
                let done = json!({
                    "item_id": id, "output_index": at, "name": call.name, "arguments": call.arguments_raw,
                });
                self.write("response.function_call_arguments.done", done, out);
            }
            PartBody::Reasoning(reasoning) => {
                let text = reasoning.text.as_deref().unwrap_or_default();
                if reasoning.form == ReasoningForm::Summary {
                    let done = event("summary_index", "text", text);
                    self.write("response.reasoning_summary_text.done", done, out);
                    let whole = json!({"type": "summary_text", "text": text});
                    let done = json!({"item_id": id, "output_index": at, "summary_index": 0, "part": whole});
                    self.write("response.reasoning_summary_part.done", done, out);
                } else if !text.is_empty() {
                    let done = event("content_index", "text", text);
                    self.write("response.reasoning_text.done", done, out);
                }
            }
            _ => {}
        }
    }
}

fn with_id(mut item: Value, part: &Part, id: &str) -> Value {
    if matches!(part.body, PartBody::ToolCall(_)) {
        item["id"] = json!(id);
        item["status"] = json!("completed");
    }
    item
}
