//! A stream, written. A call is whole here, so it is held until its arguments are.

use ir::{Block, Delta, Event, Fold, Ledger, Map, Part, PartBody, Usage};
use serde_json::{Value, json};

use crate::gemini::part_out::{Names, Purpose, encode as encode_part};
use crate::gemini::response::finish_word;
use crate::gemini::{OWN, error, usage};
use crate::stream::{Write, write_sse};

#[derive(Debug, Default)]
pub(crate) struct Writer {
    head: Map,
    pending: Map,
    blocks: Vec<(u32, bool)>,
    held: Vec<(u32, Fold)>,
    usage: Option<Usage>,
    reason: Option<String>,
}

impl Write for Writer {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match event {
            Event::Started { id, model, created } => {
                for (key, value) in [("modelVersion", model), ("responseId", id)] {
                    if let Some(value) = value {
                        self.head.insert(String::from(key), json!(value));
                    }
                }
                if created.is_some() {
                    ledger.dropped("/result/payload/created", format!("{OWN} has no word for it"));
                }
            }
            Event::Meta { ext } => {
                ledger.foreign("/result/payload", ext, OWN);
                ext.restore(OWN, &mut self.pending);
                for key in ["content", "candidate", "more_candidates"] {
                    if self.pending.shift_remove(key).is_some() {
                        let pointer = format!("/result/payload/ext/{OWN}/{key}");
                        ledger.dropped(pointer, "a stream has no place for it");
                    }
                }
            }
            Event::Usage { usage } => self.usage.get_or_insert_default().update(usage.clone()),
            Event::BlockStart { index, block } => self.start(*index, block, out, ledger),
            Event::BlockDelta { index, delta } => self.delta(*index, delta, out, ledger),
            Event::BlockEnd { index } => self.close(*index, out, ledger),
            Event::Finish { reason } => self.reason = Some(String::from(finish_word(reason))),
            Event::Warning { .. } => {
                ledger.dropped("/warnings", format!("a stream of {OWN} carries no warnings"));
            }
            Event::Foreign { dialect, data, .. } if dialect == OWN.as_str() => write_sse(out, "", data),
            Event::Foreign { dialect, .. } => {
                ledger.dropped(format!("/events/{dialect}"), format!("{OWN} has no word for it"));
            }
            Event::Error { error } => write_sse(out, "", &error::encode(error)),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let reason = self.reason.take();
        self.chunk(&[], reason, out);
    }
}

impl Writer {
    fn start(&mut self, index: u32, block: &Block, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let pointer = format!("/result/payload/content_parts/{index}");
        match block {
            Block::Text | Block::Refusal => self.blocks.push((index, false)),
            Block::Reasoning { .. } => self.blocks.push((index, true)),
            Block::ToolCall { .. } => {
                let mut fold = Fold::new();
                fold.push(Event::BlockStart {
                    index,
                    block: block.clone(),
                });
                self.held.push((index, fold));
            }
            Block::Media { media } => {
                let part = Part::from(PartBody::Media(media.clone()));
                self.part(&part, &pointer, out, ledger);
            }
            Block::Unknown { dialect, raw } if dialect == OWN.as_str() => {
                self.chunk(std::slice::from_ref(raw), None, out);
            }
            Block::Unknown { .. } => ledger.dropped(pointer, format!("{OWN} has no word for it")),
        }
    }

    fn part(&mut self, part: &Part, pointer: &str, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match encode_part(part, Purpose::Show, &Names::new(), pointer, ledger) {
            Ok(parts) => self.chunk(&parts, None, out),
            Err(error) => ledger.dropped(pointer, error.message),
        }
    }

    fn delta(&mut self, index: u32, delta: &Delta, out: &mut Vec<u8>, ledger: &mut Ledger) {
        if let Some((_, fold)) = self.held.iter_mut().find(|(at, _)| *at == index) {
            return fold.push(Event::BlockDelta {
                index,
                delta: delta.clone(),
            });
        }
        let pointer = format!("/result/payload/content_parts/{index}");
        let thought = self.blocks.iter().any(|(at, thought)| *at == index && *thought);
        let part = match delta {
            Delta::Text { text } => json!({"text": text}),
            Delta::Reasoning { text } => json!({"text": text, "thought": true}),
            Delta::Signature { signature } => {
                json!({"text": "", "thought": true, "thoughtSignature": signature})
            }
            Delta::Meta { ext } => {
                ledger.foreign(&pointer, ext, OWN);
                let mut part = Map::new();
                ext.restore(OWN, &mut part);
                if part.is_empty() {
                    return;
                }
                part.insert(String::from("text"), json!(""));
                if thought {
                    part.insert(String::from("thought"), json!(true));
                }
                Value::Object(part)
            }
            _ => return ledger.dropped(pointer, format!("{OWN} has no word for it")),
        };
        self.chunk(&[part], None, out);
    }

    fn close(&mut self, index: u32, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let Some(at) = self.held.iter().position(|(held, _)| *held == index) else {
            return;
        };
        let (_, fold) = self.held.swap_remove(at);
        if let Some(part) = fold.finish().ok().and_then(|mut whole| whole.parts.pop()) {
            self.part(
                &part,
                &format!("/result/payload/content_parts/{index}"),
                out,
                ledger,
            );
        }
    }

    fn chunk(&mut self, parts: &[Value], reason: Option<String>, out: &mut Vec<u8>) {
        let mut candidate = Map::new();
        candidate.insert(String::from("content"), json!({"parts": parts, "role": "model"}));
        let last = reason.is_some();
        if let Some(reason) = reason {
            candidate.insert(String::from("finishReason"), json!(reason));
        }
        let mut chunk = Map::new();
        chunk.insert(String::from("candidates"), json!([candidate]));
        if let Some(usage) = self.usage.as_ref().filter(|_| last) {
            chunk.insert(String::from("usageMetadata"), usage::encode(usage));
        }
        chunk.append(&mut self.pending);
        chunk.extend(self.head.clone());
        write_sse(out, "", &Value::Object(chunk));
    }
}
