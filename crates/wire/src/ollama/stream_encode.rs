//! Encodes a stream: one line per event, and a last line with the finish reason and the usage. A call is
//! encoded as a whole, so it is buffered until another block begins or the response ends.

use ir::{Action, Block, Delta, Event, Ext, Ledger, Map, Part, PartBody, Usage};
use serde_json::{Value, json};

use crate::ollama::message_encode::{MessageFields, Purpose};
use crate::ollama::response::{created_at, finish_word};
use crate::ollama::{OWN, error, usage};
use crate::pending_blocks::PendingBlocks;
use crate::stream::{EncodeEvent, write_line};

#[derive(Debug, Default)]
pub(crate) struct StreamEncoder {
    /// Fields that every line repeats.
    head: Map,
    /// Fields of the next line other than content: of the message, and of the response.
    message: Map,
    top: Map,
    kinds: Vec<(u32, &'static str)>,
    held: PendingBlocks,
    usage: Option<Usage>,
    reason: Option<String>,
}

impl EncodeEvent for StreamEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match event {
            Event::Started { id, model, created } => {
                let time = created.and_then(|seconds| created_at(seconds, &Ext::default()));
                for (key, value) in [("model", model), ("created_at", &time)] {
                    if let Some(value) = value {
                        self.head.insert(String::from(key), json!(value));
                    }
                }
                if id.is_some() {
                    ledger.dropped("/result/payload/id", format!("not supported by {OWN}"));
                }
                if created.is_some() && time.is_none() {
                    ledger.dropped("/result/payload/created", "the date is after the year 9999");
                }
            }
            Event::Meta { ext } => self.meta(ext, ledger),
            Event::Usage { usage } => self.usage.get_or_insert_default().update(usage.clone()),
            Event::BlockStart { index, block } => self.start(*index, block, out, ledger),
            Event::BlockDelta { index, delta } => self.delta(*index, delta, out, ledger),
            Event::BlockEnd { .. } => {}
            Event::Finish { reason } => {
                self.flush(out, ledger);
                self.reason = Some(finish_word(reason, ledger));
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
            Event::VendorSpecific { dialect, data, .. } if dialect == OWN.as_str() => write_line(out, data),
            Event::VendorSpecific { dialect, .. } => {
                ledger.dropped(format!("/events/{dialect}"), format!("not supported by {OWN}"));
            }
            // Clients of this dialect cannot request raw events.
            Event::Raw { .. } => {}
            Event::Error { error } => write_line(out, &error::encode(error)),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(reason) = self.reason.take() {
            self.top.insert(String::from("done_reason"), json!(reason));
        }
        if let Some(usage) = self.usage.take() {
            usage::put(&usage, &mut self.top);
        }
        self.line(Map::new(), true, out);
    }
}

impl StreamEncoder {
    fn meta(&mut self, ext: &Ext, ledger: &mut Ledger) {
        ledger.foreign("/result/payload", ext, OWN);
        if let Some(text) = ext.note(OWN, "$created_at") {
            self.head.insert(String::from("created_at"), json!(text));
        }
        let mut rest = Map::new();
        ext.restore(OWN, &mut rest);
        if let Some(Value::Object(message)) = rest.shift_remove("message") {
            self.message.extend(message);
        }
        self.top.extend(rest);
    }

    fn start(&mut self, index: u32, block: &Block, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let pointer = format!("/result/payload/content_parts/{index}");
        match block {
            Block::ToolCall { .. } | Block::Media { .. } => return self.held.start(index, block.clone()),
            Block::Text => self.kinds.push((index, "content")),
            Block::Refusal => {
                ledger.note(
                    pointer,
                    Action::Replaced,
                    format!("{OWN} encodes refusals as text"),
                );
                self.kinds.push((index, "content"));
            }
            Block::Reasoning { .. } => self.kinds.push((index, "thinking")),
            Block::Unknown { dialect, raw } => {
                let part = Part::from(PartBody::Unknown {
                    dialect: dialect.clone(),
                    raw: raw.clone(),
                });
                self.flush(out, ledger);
                return self.part(&part, &pointer, out, ledger);
            }
        }
        self.flush(out, ledger);
    }

    fn delta(&mut self, index: u32, delta: &Delta, out: &mut Vec<u8>, ledger: &mut Ledger) {
        if self.held.delta(index, delta) {
            return;
        }
        let pointer = format!("/result/payload/content_parts/{index}");
        let kind = self.kinds.iter().rev().find(|(at, _)| *at == index);
        match (delta, kind) {
            (Delta::Text { text } | Delta::Reasoning { text }, Some((_, kind))) => {
                let message = Map::from_iter([(String::from(*kind), json!(text))]);
                self.line(message, false, out);
            }
            (Delta::Meta { ext }, _) => {
                ledger.foreign(&pointer, ext, OWN);
                let mut rest = Map::new();
                ext.restore(OWN, &mut rest);
                for key in rest.keys() {
                    ledger.dropped(format!("{pointer}/ext/{OWN}/{key}"), "not supported in a stream");
                }
            }
            (Delta::Signature { .. }, _) => {
                ledger.dropped(pointer + "/signature", format!("not supported by {OWN}"));
            }
            (Delta::Sealed { .. }, _) => {
                ledger.dropped(pointer + "/data", format!("not supported by {OWN}"));
            }
            (_, None) => ledger.dropped(
                pointer,
                format!("{OWN} sends such a block in one event, which was already sent"),
            ),
            _ => ledger.dropped(pointer, format!("not supported by {OWN}")),
        }
    }

    /// Writes the buffered calls and images.
    fn flush(&mut self, out: &mut Vec<u8>, ledger: &mut Ledger) {
        for (pointer, part) in self.held.drain(ledger) {
            self.part(&part, &pointer, out, ledger);
        }
    }

    fn part(&mut self, part: &Part, pointer: &str, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let mut said = MessageFields::default();
        match said.add(part, Purpose::Show, pointer, ledger) {
            Ok(()) => {
                let mut message = Map::new();
                said.put("", &mut message);
                if !message.is_empty() {
                    self.line(message, false, out);
                }
            }
            Err(error) => ledger.dropped(pointer, error.message),
        }
    }

    fn line(&mut self, said: Map, done: bool, out: &mut Vec<u8>) {
        let mut message = Map::from_iter([(String::from("role"), json!("assistant"))]);
        message.insert(String::from("content"), json!(""));
        message.append(&mut self.message);
        message.extend(said);
        let mut line = self.head.clone();
        line.insert(String::from("message"), Value::Object(message));
        line.append(&mut self.top);
        line.insert(String::from("done"), Value::Bool(done));
        write_line(out, &Value::Object(line));
    }
}
