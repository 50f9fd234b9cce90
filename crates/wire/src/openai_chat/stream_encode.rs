//! Encodes a stream: one chunk per event, and usage in a separate chunk before the end marker.

use ir::{Block, Delta, Event, Ext, Ledger, Map, Usage};
use serde_json::{Value, json};

use crate::framing::Sse;
use crate::openai_chat::content::encode_media;
use crate::openai_chat::response::finish_word;
use crate::openai_chat::{OWN, error, usage};
use crate::stream::{EncodeEvent, write_sse};

#[derive(Debug, Default)]
pub(crate) struct StreamEncoder {
    /// Fields that every chunk repeats.
    head: Map,
    /// Fields of the next chunk other than content.
    pending: Map,
    begun: bool,
    /// The block indexes of the calls, in order.
    calls: Vec<u32>,
    kinds: Vec<(u32, &'static str)>,
    usage: Option<Usage>,
}

impl EncodeEvent for StreamEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match event {
            Event::Started { id, model, created } => {
                let mut put = |key: &str, value: Value| {
                    self.head.insert(String::from(key), value);
                };
                put("id", json!(id.as_deref().unwrap_or_default()));
                put("object", json!("chat.completion.chunk"));
                put("created", json!(created.unwrap_or_default()));
                put("model", json!(model.as_deref().unwrap_or_default()));
            }
            Event::Meta { ext } => self.meta(ext, out, ledger),
            Event::BlockStart { index, block } => self.start(*index, block, out, ledger),
            Event::BlockDelta { index, delta } => self.delta(*index, delta, out, ledger),
            Event::BlockEnd { .. } => {}
            Event::Usage { usage } => self.usage.get_or_insert_default().update(usage.clone()),
            Event::Finish { reason } => {
                let reason = finish_word(reason, ledger);
                self.chunk(json!({}), json!(reason), out);
            }
            Event::Warning { .. } => {
                ledger.dropped(
                    "/warnings",
                    format!("warnings are not supported in a stream of {OWN}"),
                );
            }
            Event::VendorSpecific { dialect, data, .. } if dialect == OWN.as_str() => {
                write_sse(out, "", data);
            }
            Event::VendorSpecific { dialect, .. } => {
                ledger.dropped(format!("/events/{dialect}"), format!("not supported by {OWN}"));
            }
            // Clients of this dialect cannot request raw events.
            Event::Raw { .. } => {}
            Event::Error { error } => write_sse(out, "", &error::encode(error)),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(usage) = self.usage.take() {
            let mut chunk = self.head.clone();
            chunk.insert(String::from("choices"), json!([]));
            chunk.append(&mut self.pending);
            chunk.insert(String::from("usage"), usage::encode(&usage, &usage::CHAT));
            write_sse(out, "", &Value::Object(chunk));
        }
        Sse::write(out, "", "[DONE]");
    }
}

impl StreamEncoder {
    fn meta(&mut self, ext: &Ext, out: &mut Vec<u8>, ledger: &mut Ledger) {
        ledger.foreign("/result/payload", ext, OWN);
        let mut rest = Map::new();
        ext.restore(OWN, &mut rest);
        if rest.shift_remove("more_choices").is_some() {
            ledger.dropped(
                "/result/payload/ext/openai-chat/more_choices",
                "a stream has one choice",
            );
        }
        let message = rest.shift_remove("message");
        let choice = rest.shift_remove("choice");
        self.pending.extend(rest);
        if message.is_some() || choice.is_some() {
            let mut whole = choice
                .and_then(|choice| choice.as_object().cloned())
                .unwrap_or_default();
            whole.insert(String::from("delta"), message.unwrap_or_else(|| json!({})));
            self.choice(whole, Value::Null, out);
        }
    }

    fn start(&mut self, index: u32, block: &Block, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let pointer = format!("/result/payload/content_parts/{index}");
        match block {
            Block::Text => self.kinds.push((index, "content")),
            Block::Refusal => self.kinds.push((index, "refusal")),
            Block::Reasoning { .. } => self.kinds.push((index, "reasoning_content")),
            Block::ToolCall { id, name } => {
                let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": ""}});
                self.calls.push(index);
                self.call(index, call, out);
            }
            Block::Media { media } if media.kind == ir::MediaKind::Audio => {
                self.kinds.push((index, "audio"));
                if let ir::MediaSource::Inline(data) = &media.source {
                    self.chunk(json!({"audio": {"data": data.as_str()}}), Value::Null, out);
                }
                if let Some(text) = &media.text_fallback {
                    self.chunk(json!({"audio": {"transcript": text}}), Value::Null, out);
                }
            }
            Block::Media { media } => match encode_media(media, &pointer, OWN, ledger) {
                Ok(image) => self.chunk(json!({"images": [image]}), Value::Null, out),
                Err(error) => ledger.dropped(pointer, error.message),
            },
            Block::Unknown { .. } => ledger.dropped(pointer, format!("not supported by {OWN}")),
        }
    }

    fn delta(&mut self, index: u32, delta: &Delta, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let pointer = || format!("/result/payload/content_parts/{index}");
        let kind = self
            .kinds
            .iter()
            .find(|(at, _)| *at == index)
            .map_or("", |(_, kind)| *kind);
        match delta {
            Delta::Text { text } if kind == "audio" => {
                self.chunk(json!({"audio": {"transcript": text}}), Value::Null, out);
            }
            Delta::Text { text } | Delta::Reasoning { text } if !kind.is_empty() => {
                self.chunk(json!({kind: text}), Value::Null, out);
            }
            Delta::ToolArguments { json } => self.call(index, json!({"function": {"arguments": json}}), out),
            Delta::Data { base64 } => self.chunk(json!({"audio": {"data": base64}}), Value::Null, out),
            Delta::Annotation { dialect, list, value } if *dialect == OWN && list == "logprobs" => {
                let choice = json!({"delta": {}, "logprobs": {"content": [value]}});
                self.choice(choice.as_object().cloned().unwrap_or_default(), Value::Null, out);
            }
            Delta::Meta { ext } => self.block_meta(index, kind, ext, out, ledger),
            Delta::Signature { .. } => {
                ledger.dropped(pointer() + "/signature", format!("not supported by {OWN}"));
            }
            Delta::Sealed { .. } => ledger.dropped(pointer() + "/data", format!("not supported by {OWN}")),
            Delta::Annotation { list, .. } => {
                ledger.dropped(pointer() + "/" + list, format!("not supported by {OWN}"));
            }
            Delta::Text { .. } | Delta::Reasoning { .. } => {
                ledger.dropped(pointer(), format!("not supported by {OWN}"));
            }
        }
    }

    fn block_meta(&mut self, index: u32, kind: &str, ext: &Ext, out: &mut Vec<u8>, ledger: &mut Ledger) {
        ledger.foreign(&format!("/result/payload/content_parts/{index}"), ext, OWN);
        let mut rest = Map::new();
        ext.restore(OWN, &mut rest);
        if let Some(Value::Array(list)) = rest.shift_remove("logprobs") {
            let mut choice = Map::new();
            choice.insert(String::from("delta"), json!({}));
            choice.insert(String::from("logprobs"), json!({"content": list}));
            self.choice(choice, Value::Null, out);
        }
        if rest.is_empty() {
        } else if self.calls.contains(&index) {
            self.call(index, Value::Object(rest), out);
        } else if kind == "audio" {
            self.chunk(json!({"audio": rest}), Value::Null, out);
        } else {
            for key in rest.keys() {
                let pointer = format!("/result/payload/content_parts/{index}/ext/{OWN}/{key}");
                ledger.dropped(pointer, "not supported in a stream");
            }
        }
    }

    fn call(&mut self, index: u32, mut call: Value, out: &mut Vec<u8>) {
        let number = self.calls.iter().position(|at| *at == index).unwrap_or_default();
        if let Some(map) = call.as_object_mut() {
            map.shift_insert(0, String::from("index"), json!(number));
        }
        self.chunk(json!({"tool_calls": [call]}), Value::Null, out);
    }

    fn chunk(&mut self, delta: Value, finish_reason: Value, out: &mut Vec<u8>) {
        let choice = Map::from_iter([(String::from("delta"), delta)]);
        self.choice(choice, finish_reason, out);
    }

    fn choice(&mut self, mut choice: Map, finish_reason: Value, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true)
            && let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut)
        {
            delta.shift_insert(0, String::from("role"), json!("assistant"));
        }
        choice.shift_insert(0, String::from("index"), json!(0));
        choice.insert(String::from("finish_reason"), finish_reason);
        let mut chunk = self.head.clone();
        chunk.append(&mut self.pending);
        chunk.insert(String::from("choices"), json!([choice]));
        write_sse(out, "", &Value::Object(chunk));
    }
}
