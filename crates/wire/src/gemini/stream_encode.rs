//! Encodes a stream: server-sent events, or one list. A call is encoded as a whole, so it is buffered until
//! another block begins or the response ends.

use ir::{Action, Block, Delta, Event, Ext, FinishReason, Ledger, Map, Part, ReasoningOrigin, Usage};
use serde_json::{Value, json};

use crate::gemini::part_encode::{Names, Purpose, encode as encode_part};
use crate::gemini::response::{create_time, finish_word};
use crate::gemini::{OWN, error, usage};
use crate::pending_blocks::PendingBlocks;
use crate::stream::{EncodeEvent, write_sse};

#[derive(Debug, Default)]
pub(crate) struct StreamEncoder {
    list: bool,
    begun: bool,
    /// Fields that every event repeats.
    head: Map,
    /// Fields of the next event other than content: of the candidate, and of the response.
    candidate: Map,
    top: Map,
    texts: Vec<PendingText>,
    held: PendingBlocks,
    usage: Option<Usage>,
    /// The original finish reason of a content filter, if it came from this dialect.
    filter: Option<String>,
    reason: Option<String>,
}

/// A text block in progress.
#[derive(Debug)]
struct PendingText {
    index: u32,
    thought: bool,
    /// Its signature came from this dialect.
    own: bool,
}

impl EncodeEvent for StreamEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match event {
            Event::Started { id, model, created } => {
                let time = created.and_then(|seconds| create_time(seconds, &Ext::default()));
                for (key, value) in [("modelVersion", model), ("responseId", id), ("createTime", &time)] {
                    if let Some(value) = value {
                        self.head.insert(String::from(key), json!(value));
                    }
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
                let filter = self.filter.take();
                let filter = filter.filter(|_| *reason == FinishReason::ContentFilter);
                self.reason = Some(filter.unwrap_or_else(|| finish_word(reason, ledger)));
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
            Event::VendorSpecific { dialect, data, .. } if dialect == OWN.as_str() => self.write(data, out),
            Event::VendorSpecific { dialect, .. } => {
                ledger.dropped(format!("/events/{dialect}"), format!("not supported by {OWN}"));
            }
            // Clients of this dialect cannot request raw events.
            Event::Raw { .. } => {}
            Event::Error { error } => {
                self.write(&error::encode(error), out);
                self.close_list(out);
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let reason = self.reason.take();
        if let Some(reason) = reason {
            self.candidate.insert(String::from("finishReason"), json!(reason));
        }
        if let Some(usage) = self.usage.take() {
            self.top
                .insert(String::from("usageMetadata"), usage::encode(&usage));
        }
        // Clients expect a part in every event.
        self.parts(vec![json!({"text": ""})], out);
        self.close_list(out);
    }
}

impl StreamEncoder {
    /// One list instead of server-sent events.
    pub(crate) fn list() -> Self {
        Self {
            list: true,
            ..Self::default()
        }
    }

    fn meta(&mut self, ext: &Ext, ledger: &mut Ledger) {
        ledger.foreign("/result/payload", ext, OWN);
        if let Some(text) = ext.note(OWN, "$createTime") {
            self.head.insert(String::from("createTime"), json!(text));
        }
        if let Some(word) = ext.note(OWN, "$finishReason") {
            self.filter = Some(String::from(word));
        }
        let mut rest = Map::new();
        ext.restore(OWN, &mut rest);
        if rest.shift_remove("more_candidates").is_some() {
            ledger.dropped(
                "/result/payload/ext/gemini/more_candidates",
                "a stream has one candidate",
            );
        }
        let content = rest.shift_remove("content");
        if let Some(Value::Object(candidate)) = rest.shift_remove("candidate") {
            self.candidate.extend(candidate);
        }
        if let Some(content) = content {
            self.candidate.insert(String::from("content"), content);
        }
        self.top.extend(rest);
    }

    fn start(&mut self, index: u32, block: &Block, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let pointer = format!("/result/payload/content_parts/{index}");
        let text = |thought, own| PendingText { index, thought, own };
        match block {
            Block::ToolCall { .. } | Block::Media { .. } => return self.held.start(index, block.clone()),
            Block::Text => self.texts.push(text(false, true)),
            Block::Refusal => {
                ledger.note(
                    pointer,
                    Action::Replaced,
                    format!("{OWN} encodes refusals as text"),
                );
                self.texts.push(text(false, true));
            }
            Block::Reasoning { origin, .. } => {
                let own = origin
                    .as_ref()
                    .is_some_and(|origin| origin.agrees_with(&ReasoningOrigin::dialect(OWN)));
                self.texts.push(text(true, own));
            }
            Block::Unknown { dialect, raw } if dialect == OWN.as_str() => {
                self.flush(out, ledger);
                return self.parts(vec![raw.clone()], out);
            }
            Block::Unknown { .. } => return ledger.dropped(pointer, format!("not supported by {OWN}")),
        }
        self.flush(out, ledger);
    }

    fn delta(&mut self, index: u32, delta: &Delta, out: &mut Vec<u8>, ledger: &mut Ledger) {
        if self.held.delta(index, delta) {
            return;
        }
        let pointer = format!("/result/payload/content_parts/{index}");
        let text = self.texts.iter().rev().find(|text| text.index == index);
        let Some(PendingText { thought, own, .. }) = text else {
            return ledger.dropped(
                pointer,
                format!("{OWN} sends such a block in one event, which was already sent"),
            );
        };
        let mut part = Map::new();
        let mut put = |key: &str, value: Value| {
            part.insert(String::from(key), value);
        };
        match delta {
            Delta::Text { text } | Delta::Reasoning { text } => put("text", json!(text)),
            Delta::Signature { signature } if *own => {
                put("text", json!(""));
                put("thoughtSignature", json!(signature));
            }
            Delta::Signature { .. } => {
                return ledger.dropped(
                    pointer + "/signature",
                    "a signature is sent only to its original dialect",
                );
            }
            Delta::Meta { ext } => {
                ledger.foreign(&pointer, ext, OWN);
                ext.restore(OWN, &mut part);
                if part.is_empty() {
                    return;
                }
                part.insert(String::from("text"), json!(""));
            }
            _ => return ledger.dropped(pointer, format!("not supported by {OWN}")),
        }
        if *thought {
            part.insert(String::from("thought"), json!(true));
        }
        self.parts(vec![Value::Object(part)], out);
    }

    /// Writes the buffered calls and media.
    fn flush(&mut self, out: &mut Vec<u8>, ledger: &mut Ledger) {
        for (pointer, part) in self.held.drain(ledger) {
            self.part(&part, &pointer, out, ledger);
        }
    }

    fn part(&mut self, part: &Part, pointer: &str, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match encode_part(part, Purpose::Show, &Names::new(), pointer, ledger) {
            Ok(Some(value)) => self.parts(vec![value], out),
            Ok(None) => {}
            Err(error) => ledger.dropped(pointer, error.message),
        }
    }

    fn parts(&mut self, parts: Vec<Value>, out: &mut Vec<u8>) {
        let mut content = match self.candidate.shift_remove("content") {
            Some(Value::Object(content)) => content,
            _ => Map::new(),
        };
        content.insert(String::from("parts"), Value::Array(parts));
        content.entry("role").or_insert_with(|| json!("model"));
        let mut candidate = Map::from_iter([(String::from("content"), Value::Object(content))]);
        candidate.append(&mut self.candidate);
        candidate.entry("index").or_insert_with(|| json!(0));
        let mut chunk = Map::new();
        chunk.insert(String::from("candidates"), json!([candidate]));
        chunk.append(&mut self.top);
        chunk.extend(self.head.clone());
        self.write(&Value::Object(chunk), out);
    }

    fn write(&mut self, value: &Value, out: &mut Vec<u8>) {
        if self.list {
            let border: &[u8] = if self.begun { b",\r\n" } else { b"[" };
            out.extend_from_slice(border);
            out.extend_from_slice(value.to_string().as_bytes());
        } else {
            write_sse(out, "", value);
        }
        self.begun = true;
    }

    fn close_list(&self, out: &mut Vec<u8>) {
        if self.list {
            out.push(b']');
        }
    }
}
