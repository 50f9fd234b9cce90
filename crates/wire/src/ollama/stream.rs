//! A stream in both directions: each line is a piece of a message, the last one says `done`.

use ir::media::Base64;
use ir::{
    Block, Delta, Event, Fields, Fold, Ledger, Map, Media, MediaKind, MediaSource, Origin, PartBody, Phase,
    ReasoningForm, Usage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::error_body;
use crate::ollama::OWN;
use crate::ollama::message_in::{self, Calls};
use crate::ollama::message_out::encode_call;
use crate::ollama::response::{book_usage, finish_of, finish_word, put_usage, timestamp, usage_of};
use crate::stream::{Read, Write, cut, garbled, write_line};

const REASONING: u32 = 0;
const TEXT: u32 = 1;
const PICTURES: u32 = 16;
const CALLS: u32 = 1024;

#[derive(Debug, Default)]
pub(crate) struct Reader {
    started: bool,
    begun: Vec<u32>,
    open: Option<u32>,
    pictures: u32,
    calls: Calls,
    called: u32,
    done: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Short {
    #[serde(default, rename = "model")]
    _model: IgnoredAny,
    #[serde(default, rename = "created_at")]
    _created_at: IgnoredAny,
    message: ShortMessage,
    done: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShortMessage {
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
    #[serde(default)]
    content: String,
    #[serde(default)]
    thinking: String,
}

impl Read for Reader {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.done {
            return;
        }
        if self.started
            && let Ok(Short {
                message, done: false, ..
            }) = serde_json::from_str(data)
        {
            self.text(REASONING, message.thinking, out);
            self.text(TEXT, message.content, out);
            return;
        }
        match serde_json::from_str::<Value>(data) {
            Ok(value) => self.line(value, out),
            Err(why) => out.push(garbled(OWN, &why)),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        if !self.done {
            out.push(cut());
        }
    }
}

impl Reader {
    fn line(&mut self, value: Value, out: &mut Vec<Event>) {
        if let Some(error) = error_body::from_value(OWN, value.clone(), Phase::MidStream, None) {
            return out.push(Event::Error { error });
        }
        let Some(mut fields) = Fields::of(value) else {
            return;
        };
        let model = fields.string("model");
        if !std::mem::replace(&mut self.started, true) {
            out.push(Event::Started {
                id: None,
                model,
                created: None,
            });
        }
        let mut message = fields.object("message").unwrap_or_default();
        message.take("role");
        self.text(REASONING, message.string("thinking").unwrap_or_default(), out);
        self.text(TEXT, message.string("content").unwrap_or_default(), out);
        for data in message.strings("images").unwrap_or_default() {
            let media =
                Media::new(MediaSource::Inline(Base64::from_text(data)), None).with_kind(MediaKind::Image);
            self.pictures += 1;
            self.begin(
                PICTURES + self.pictures,
                Block::Media {
                    media: Box::new(media),
                },
                out,
            );
        }
        for call in message.array("tool_calls").unwrap_or_default() {
            self.call(call, out);
        }
        let done = fields.bool("done") == Some(true);
        if !done {
            fields.take("created_at");
        }
        if !message.is_empty() {
            fields.put_back("$message", Value::Object(message.rest()));
        }
        let finish = fields.string("done_reason");
        out.extend(usage_of(&mut fields).map(|usage| Event::Usage { usage }));
        out.extend(ir::fold::meta(OWN, fields.rest()));
        if done {
            self.done = true;
            self.close(out);
            let reason = finish_of(finish.as_deref().unwrap_or("stop"), self.called > 0);
            out.push(Event::Finish { reason });
        }
    }

    fn text(&mut self, index: u32, text: String, out: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        if index == TEXT {
            self.begin(index, Block::Text, out);
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Text { text },
            });
        } else {
            let origin = Some(Origin::dialect(OWN));
            self.begin(
                index,
                Block::Reasoning {
                    form: ReasoningForm::Text,
                    id: None,
                    origin,
                },
                out,
            );
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Reasoning { text },
            });
        }
    }

    fn call(&mut self, value: Value, out: &mut Vec<Event>) {
        let part = message_in::call(value, &mut self.calls);
        let index = CALLS + self.called;
        self.called += 1;
        match part.body {
            PartBody::ToolCall(call) => {
                self.begin(
                    index,
                    Block::ToolCall {
                        id: call.id,
                        name: call.name,
                    },
                    out,
                );
                let delta = Delta::ToolArguments {
                    json: call.arguments_raw,
                };
                out.push(Event::BlockDelta { index, delta });
            }
            PartBody::Unknown { dialect, raw } => self.begin(index, Block::Unknown { dialect, raw }, out),
            _ => return,
        }
        if !part.ext.is_empty() {
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Meta { ext: part.ext },
            });
        }
    }

    fn begin(&mut self, index: u32, block: Block, out: &mut Vec<Event>) {
        if self.begun.contains(&index) {
            return;
        }
        self.close(out);
        self.begun.push(index);
        self.open = Some(index);
        out.push(Event::BlockStart { index, block });
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        out.extend(self.open.take().map(|index| Event::BlockEnd { index }));
    }
}

#[derive(Debug, Default)]
pub(crate) struct Writer {
    head: Map,
    last: Map,
    held: Vec<(u32, Fold)>,
    usage: Option<Usage>,
    reason: Option<String>,
}

impl Write for Writer {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>, ledger: &mut Ledger) {
        match event {
            Event::Started { id, model, created } => {
                self.head
                    .insert(String::from("model"), json!(model.as_deref().unwrap_or_default()));
                if let Some(created) = created {
                    self.head
                        .insert(String::from("created_at"), json!(timestamp(*created)));
                }
                if id.is_some() {
                    ledger.dropped("/result/payload/id", format!("{OWN} has no word for it"));
                }
            }
            Event::Meta { ext } => {
                ledger.foreign("/result/payload", ext, OWN);
                ext.restore(OWN, &mut self.last);
                self.last.shift_remove("$message");
            }
            Event::Usage { usage } => self.usage.get_or_insert_default().update(usage.clone()),
            Event::BlockStart { index, block } => self.start(*index, block, out, ledger),
            Event::BlockDelta { index, delta } => self.delta(*index, delta, out, ledger),
            Event::BlockEnd { index } => self.close(*index, out, ledger),
            Event::Finish { reason } => {
                self.reason = Some(String::from(finish_word(reason)));
                book_usage(self.usage.as_ref(), ledger);
            }
            Event::Warning { .. } => {
                ledger.dropped("/warnings", format!("a stream of {OWN} carries no warnings"));
            }
            Event::Foreign { dialect, .. } => {
                ledger.dropped(format!("/events/{dialect}"), format!("{OWN} has no word for it"));
            }
            Event::Error { error } => write_line(out, &crate::ollama::encode_error(error)),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let mut line = self.head.clone();
        line.insert(
            String::from("message"),
            json!({"role": "assistant", "content": ""}),
        );
        line.insert(String::from("done"), json!(true));
        line.insert(
            String::from("done_reason"),
            json!(self.reason.as_deref().unwrap_or("stop")),
        );
        put_usage(self.usage.as_ref(), &mut line);
        for (key, value) in std::mem::take(&mut self.last) {
            line.entry(key).or_insert(value);
        }
        write_line(out, &Value::Object(line));
    }
}

impl Writer {
    fn start(&mut self, index: u32, block: &Block, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let pointer = format!("/result/payload/content_parts/{index}");
        match block {
            Block::Text | Block::Refusal | Block::Reasoning { .. } => {}
            Block::ToolCall { .. } => {
                let mut fold = Fold::new();
                fold.push(Event::BlockStart {
                    index,
                    block: block.clone(),
                });
                self.held.push((index, fold));
            }
            Block::Media { media } => match &media.source {
                MediaSource::Inline(data) if media.kind == MediaKind::Image => {
                    self.write(json!({"content": "", "images": [data.as_str()]}), out);
                }
                _ => ledger.dropped(pointer, format!("{OWN} has no word for it")),
            },
            Block::Unknown { .. } => ledger.dropped(pointer, format!("{OWN} has no word for it")),
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
        match delta {
            Delta::Text { text } => self.write(json!({"content": text}), out),
            Delta::Reasoning { text } => self.write(json!({"content": "", "thinking": text}), out),
            Delta::Meta { ext } => ledger.foreign(&pointer, ext, OWN),
            _ => ledger.dropped(pointer, format!("{OWN} has no word for it")),
        }
    }

    fn close(&mut self, index: u32, out: &mut Vec<u8>, ledger: &mut Ledger) {
        let Some(at) = self.held.iter().position(|(held, _)| *held == index) else {
            return;
        };
        let (_, fold) = self.held.swap_remove(at);
        if let Some(part) = fold.finish().ok().and_then(|mut whole| whole.parts.pop()) {
            let pointer = format!("/result/payload/content_parts/{index}");
            ledger.foreign(&pointer, &part.ext, OWN);
            let call = encode_call(&part, &pointer, ledger);
            self.write(json!({"content": "", "tool_calls": [call]}), out);
        }
    }

    fn write(&mut self, mut message: Value, out: &mut Vec<u8>) {
        message["role"] = json!("assistant");
        let mut line = self.head.clone();
        line.insert(String::from("message"), message);
        line.insert(String::from("done"), json!(false));
        write_line(out, &Value::Object(line));
    }
}
