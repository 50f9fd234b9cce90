//! Encodes a stream. One block is open at a time, numbered in the order in which blocks begin.

use ir::{Block, Delta, Event, Ext, Ledger, Map, Part, PartBody, ReasoningForm, Usage};
use serde_json::{Value, json};

use crate::anthropic::block_encode::{Purpose, encode as encode_block};
use crate::anthropic::response::finish_word;
use crate::anthropic::{OWN, error, usage};
use crate::stream::{EncodeEvent, write_sse};

#[derive(Debug, Default)]
pub(crate) struct StreamEncoder {
    /// The message, until `message_start` is written.
    message: Map,
    begun: bool,
    /// The blocks so far; their position is their number.
    blocks: Vec<u32>,
    open: Option<usize>,
    /// Fields that arrive after `message_start` and are written with the end.
    late: Map,
    usage: Option<Usage>,
    reason: Option<String>,
}

impl EncodeEvent for StreamEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match event {
            Event::Started { id, model, created } => {
                self.message
                    .insert(String::from("id"), json!(id.as_deref().unwrap_or_default()));
                self.message
                    .insert(String::from("model"), json!(model.as_deref().unwrap_or_default()));
                if created.is_some() {
                    ledger.dropped("/result/payload/created", format!("not supported by {OWN}"));
                }
            }
            Event::Meta { ext } => {
                ledger.foreign("/result/payload", ext, OWN);
                let target = if self.begun {
                    &mut self.late
                } else {
                    &mut self.message
                };
                ext.restore(OWN, target);
            }
            Event::Usage { usage } => self.usage.get_or_insert_default().update(usage.clone()),
            Event::BlockStart { index, block } => self.start(*index, block, out, ledger),
            Event::BlockDelta { index, delta } => self.delta(*index, delta, out, ledger),
            Event::BlockEnd { .. } => self.close(out),
            Event::Finish { reason } => {
                self.reason = Some(String::from(finish_word(reason)));
                if let Some(usage) = &self.usage {
                    usage::book(usage, ledger);
                }
            }
            Event::Warning { .. } => {
                ledger.dropped(
                    "/warnings",
                    format!("warnings are not supported in a stream of {OWN}"),
                );
            }
            Event::VendorSpecific { dialect, name, data } if dialect == OWN.as_str() => {
                self.begin(out);
                write_sse(out, name.as_deref().unwrap_or_default(), data);
            }
            Event::VendorSpecific { dialect, .. } => {
                ledger.dropped(format!("/events/{dialect}"), format!("not supported by {OWN}"));
            }
            // Clients of this dialect cannot request raw events.
            Event::Raw { .. } => {}
            Event::Error { error } => write_sse(out, "error", &error::encode(error)),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        self.close(out);
        let mut delta = Map::new();
        delta.insert(String::from("stop_reason"), json!(self.reason));
        delta.insert(String::from("stop_sequence"), Value::Null);
        let mut event = Map::new();
        event.insert(String::from("type"), json!("message_delta"));
        delta.append(&mut self.late);
        event.insert(String::from("delta"), Value::Object(delta));
        if self.usage.is_some() {
            event.insert(String::from("usage"), usage::encode(self.usage.as_ref()));
        }
        write_sse(out, "message_delta", &Value::Object(event));
        write_sse(out, "message_stop", &json!({"type": "message_stop"}));
    }
}

impl StreamEncoder {
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let mut message = Map::new();
        message.insert(String::from("type"), json!("message"));
        message.insert(String::from("role"), json!("assistant"));
        message.insert(String::from("content"), json!([]));
        message.append(&mut self.message);
        message.insert(String::from("stop_reason"), Value::Null);
        message.entry("stop_sequence").or_insert(Value::Null);
        message.insert(String::from("usage"), usage::encode(self.usage.as_ref()));
        write_sse(
            out,
            "message_start",
            &json!({"type": "message_start", "message": message}),
        );
    }

    fn start(&mut self, index: u32, block: &Block, out: &mut Vec<u8>, ledger: &mut Ledger) {
        self.begin(out);
        self.close(out);
        let pointer = format!("/result/payload/content_parts/{index}");
        let content = match block {
            Block::Text => json!({"type": "text", "text": ""}),
            Block::Refusal => {
                ledger.note(
                    pointer,
                    ir::Action::Replaced,
                    format!("{OWN} encodes refusals as text"),
                );
                json!({"type": "text", "text": ""})
            }
            // Sealed reasoning arrives as one delta and is written then.
            Block::Reasoning {
                form: ReasoningForm::Redacted | ReasoningForm::Encrypted,
                ..
            } => return,
            Block::Reasoning { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Block::ToolCall { id, name } => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            Block::Media { media } => {
                let part = Part::from(PartBody::Media(media.clone()));
                match encode_block(&part, Purpose::Show, &pointer, ledger) {
                    Ok(Some(value)) => value,
                    Ok(None) => return,
                    Err(error) => return ledger.dropped(pointer, error.message),
                }
            }
            Block::Unknown { dialect, raw } if dialect == OWN.as_str() => raw.clone(),
            Block::Unknown { .. } => return ledger.dropped(pointer, format!("not supported by {OWN}")),
        };
        self.write_start(index, &content, out);
    }

    fn write_start(&mut self, index: u32, content: &Value, out: &mut Vec<u8>) {
        let number = self.blocks.len();
        self.blocks.push(index);
        self.open = Some(number);
        let event = json!({"type": "content_block_start", "index": number, "content_block": content});
        write_sse(out, "content_block_start", &event);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(number) = self.open.take() {
            let event = json!({"type": "content_block_stop", "index": number});
            write_sse(out, "content_block_stop", &event);
        }
    }

    fn delta(&mut self, index: u32, delta: &Delta, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let pointer = || format!("/result/payload/content_parts/{index}");
        let number = self.blocks.iter().rposition(|at| *at == index);
        let content = match delta {
            Delta::Sealed { data } => {
                let content = json!({"type": "redacted_thinking", "data": data});
                return self.write_start(index, &content, out);
            }
            Delta::Text { text } => json!({"type": "text_delta", "text": text}),
            Delta::Reasoning { text } => json!({"type": "thinking_delta", "thinking": text}),
            Delta::ToolArguments { json } => json!({"type": "input_json_delta", "partial_json": json}),
            Delta::Signature { signature } => json!({"type": "signature_delta", "signature": signature}),
            Delta::Annotation { dialect, list, value } if *dialect == OWN && list == "citations" => {
                json!({"type": "citations_delta", "citation": value})
            }
            Delta::Meta { ext } => return write_meta(index, number, ext, out, ledger),
            Delta::Annotation { .. } | Delta::Data { .. } => {
                return ledger.dropped(pointer(), format!("not supported by {OWN}"));
            }
        };
        match number {
            Some(number) => write_delta(number, &content, out),
            None => ledger.dropped(pointer(), format!("not supported by {OWN}")),
        }
    }
}

fn write_meta(index: u32, number: Option<usize>, ext: &Ext, out: &mut Vec<u8>, ledger: &mut Ledger) {
    let pointer = format!("/result/payload/content_parts/{index}");
    ledger.foreign(&pointer, ext, OWN);
    let mut rest = Map::new();
    ext.restore(OWN, &mut rest);
    if let (Some(Value::Array(list)), Some(number)) = (rest.shift_remove("citations"), number) {
        for citation in list {
            write_delta(
                number,
                &json!({"type": "citations_delta", "citation": citation}),
                out,
            );
        }
    }
    for key in rest.keys() {
        ledger.dropped(format!("{pointer}/ext/{OWN}/{key}"), "not supported in a stream");
    }
}

fn write_delta(number: usize, delta: &Value, out: &mut Vec<u8>) {
    let event = json!({"type": "content_block_delta", "index": number, "delta": delta});
    write_sse(out, "content_block_delta", &event);
}
