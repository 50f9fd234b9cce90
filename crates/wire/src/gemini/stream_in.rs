//! A stream, read: every event is a piece of an answer in the form of a whole one. Neighbouring texts are
//! one block. The stream has no final mark; a reason to finish is the mark.

use ir::event::Warning;
use ir::{
    Block, Delta, Event, Ext, Fields, FinishReason, Map, Origin, Part, PartBody, Phase, ReasoningForm, Usage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::error_body;
use crate::gemini::part_in::{self, Calls};
use crate::gemini::response::finish_of;
use crate::gemini::{OWN, partial, usage};
use crate::stream::{Read, cut, garbled};

#[derive(Debug, Default)]
pub(crate) struct Reader {
    started: bool,
    next: u32,
    open: Option<(u32, Open)>,
    calls: Calls,
    called: bool,
    /// A call whose arguments come piece by piece.
    partial: Option<(String, String, Value, Map)>,
    told: Map,
    finish: Option<FinishReason>,
    blocked: bool,
    warned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Text,
    Reasoning,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Short {
    candidates: (ShortCandidate,),
    #[serde(default)]
    usage_metadata: Option<ShortUsage>,
    #[serde(default, rename = "modelVersion")]
    _model_version: IgnoredAny,
    #[serde(default, rename = "responseId")]
    _response_id: IgnoredAny,
    #[serde(default, rename = "createTime")]
    _create_time: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShortCandidate {
    content: ShortContent,
    #[serde(default)]
    index: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShortContent {
    parts: (ShortPart,),
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShortPart {
    text: String,
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShortUsage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
}

impl Read for Reader {
    fn frame(&mut self, data: &str, out: &mut Vec<Event>) {
        if self.started
            && self.partial.is_none()
            && let Ok(Short {
                candidates: (ShortCandidate { content, index: 0 },),
                usage_metadata,
                ..
            }) = serde_json::from_str(data)
        {
            let (ShortPart { text, thought },) = content.parts;
            self.text(text, thought, out);
            out.extend(
                usage_metadata
                    .as_ref()
                    .and_then(short_usage)
                    .map(|usage| Event::Usage { usage }),
            );
            return;
        }
        match serde_json::from_str::<Value>(data) {
            Ok(value) => self.chunk(value, out),
            Err(why) => out.push(garbled(OWN, &why)),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        self.end_partial(out);
        self.close(out);
        match self.finish.take() {
            Some(reason) => out.push(Event::Finish { reason }),
            None if self.blocked => out.push(Event::Finish {
                reason: FinishReason::ContentFilter,
            }),
            None => out.push(cut()),
        }
    }
}

/// What is known so far. The provider's own words come with the last piece.
fn short_usage(counts: &ShortUsage) -> Option<Usage> {
    let thoughts = counts.thoughts_token_count;
    let spoken = counts.candidates_token_count;
    let usage = Usage {
        input_tokens: counts.prompt_token_count,
        output_tokens: spoken.map(|spoken| spoken.saturating_add(thoughts.unwrap_or(0))),
        cache_read_tokens: counts.cached_content_token_count,
        reasoning_tokens: thoughts,
        ..Usage::default()
    };
    (usage != Usage::default()).then_some(usage)
}

impl Reader {
    fn chunk(&mut self, value: Value, out: &mut Vec<Event>) {
        if let Some(error) = error_body::from_value(OWN, value.clone(), Phase::MidStream, None) {
            return out.push(Event::Error { error });
        }
        let Some(mut fields) = Fields::of(value) else {
            return;
        };
        let (id, model) = (fields.string("responseId"), fields.string("modelVersion"));
        if !std::mem::replace(&mut self.started, true) {
            out.push(Event::Started {
                id,
                model,
                created: None,
            });
        }
        if let Some(counts) = fields.object("usageMetadata") {
            let usage = usage::decode(&Value::Object(counts.rest()));
            out.push(Event::Usage { usage });
        }
        self.blocked |= fields.peek("promptFeedback").is_some();
        for candidate in fields
            .array("candidates")
            .unwrap_or_default()
            .into_iter()
            .filter_map(Fields::of)
        {
            self.candidate(candidate, &mut fields, out);
        }
        let mut rest = fields.rest();
        rest.retain(|key, value| self.told.get(key) != Some(value));
        if !rest.is_empty() {
            self.told.extend(rest.clone());
            out.push(Event::Meta {
                ext: Ext::of(OWN, rest),
            });
        }
    }

    fn candidate(&mut self, mut candidate: Fields, top: &mut Fields, out: &mut Vec<Event>) {
        if candidate.peek("index").and_then(Value::as_u64).unwrap_or(0) > 0 {
            if !std::mem::replace(&mut self.warned, true) {
                let message = "the stream holds several candidates; only the first is kept";
                out.push(Event::Warning {
                    warning: Warning::new("further_choices_dropped", message),
                });
            }
            return;
        }
        let mut content = candidate.object("content").unwrap_or_default();
        for part in content.array("parts").unwrap_or_default() {
            if !self.partial_call(&part, out) {
                let part = part_in::decode(part, &mut self.calls);
                self.part(part, out);
            }
        }
        if let Some(word) = candidate.string("finishReason") {
            self.end_partial(out);
            let mut ext = Ext::default();
            self.finish = Some(finish_of(&word, self.called, &mut ext));
            if !ext.is_empty() {
                out.push(Event::Meta { ext });
            }
        }
        if content.peek("role") == Some(&json!("model")) {
            content.take("role");
        }
        for (key, kept) in [("content", content), ("candidate", candidate)] {
            if !kept.is_empty() {
                top.put_back(key, Value::Object(kept.rest()));
            }
        }
    }

    fn text(&mut self, text: String, thought: bool, out: &mut Vec<Event>) {
        let kind = if thought { Open::Reasoning } else { Open::Text };
        if text.is_empty() && self.open.is_none_or(|(_, open)| open != kind) {
            return;
        }
        let index = self.begin(kind, out);
        if text.is_empty() {
            return;
        }
        let delta = if thought {
            Delta::Reasoning { text }
        } else {
            Delta::Text { text }
        };
        out.push(Event::BlockDelta { index, delta });
    }

    fn begin(&mut self, kind: Open, out: &mut Vec<Event>) -> u32 {
        if let Some((index, open)) = self.open
            && open == kind
        {
            return index;
        }
        let block = match kind {
            Open::Text => Block::Text,
            Open::Reasoning => Block::Reasoning {
                form: ReasoningForm::Text,
                id: None,
                origin: Some(Origin::dialect(OWN)),
            },
        };
        let index = self.start(block, out);
        self.open = Some((index, kind));
        index
    }

    fn start(&mut self, block: Block, out: &mut Vec<Event>) -> u32 {
        self.close(out);
        let index = self.next;
        self.next += 1;
        out.push(Event::BlockStart { index, block });
        index
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        if let Some((index, _)) = self.open.take() {
            out.push(Event::BlockEnd { index });
        }
    }

    /// A part of the answer. One that carries more than its text ends its block.
    fn part(&mut self, part: Part, out: &mut Vec<Event>) {
        let Part { body, ext, .. } = part;
        match body {
            PartBody::Text(text) if ext.is_empty() => self.text(text, false, out),
            PartBody::Text(text) => {
                let index = self.begin(Open::Text, out);
                out.push(Event::BlockDelta {
                    index,
                    delta: Delta::Text { text },
                });
                out.push(Event::BlockDelta {
                    index,
                    delta: Delta::Meta { ext },
                });
                self.close(out);
            }
            PartBody::Reasoning(reasoning) => {
                let index = self.begin(Open::Reasoning, out);
                let text = reasoning.text.unwrap_or_default();
                out.push(Event::BlockDelta {
                    index,
                    delta: Delta::Reasoning { text },
                });
                if let Some(signature) = reasoning.signature {
                    out.push(Event::BlockDelta {
                        index,
                        delta: Delta::Signature { signature },
                    });
                    self.close(out);
                }
            }
            PartBody::ToolCall(call) => {
                self.called = true;
                let index = self.start(
                    Block::ToolCall {
                        id: call.id,
                        name: call.name,
                    },
                    out,
                );
                out.push(Event::BlockDelta {
                    index,
                    delta: Delta::ToolArguments {
                        json: call.arguments_raw,
                    },
                });
                self.finish_block(index, ext, out);
            }
            PartBody::Media(media) => {
                let index = self.start(Block::Media { media }, out);
                self.finish_block(index, ext, out);
            }
            PartBody::Unknown { dialect, raw } => {
                let index = self.start(Block::Unknown { dialect, raw }, out);
                self.finish_block(index, ext, out);
            }
            PartBody::Refusal(_) | PartBody::ToolResult(_) => {}
        }
    }

    fn finish_block(&mut self, index: u32, ext: Ext, out: &mut Vec<Event>) {
        if !ext.is_empty() {
            out.push(Event::BlockDelta {
                index,
                delta: Delta::Meta { ext },
            });
        }
        self.open = None;
        out.push(Event::BlockEnd { index });
    }

    /// Takes a piece of a call in; says whether it was one.
    fn partial_call(&mut self, part: &Value, out: &mut Vec<Event>) -> bool {
        let Some(call) = part.get("functionCall").and_then(Value::as_object) else {
            return false;
        };
        let goes_on = call.get("willContinue") == Some(&Value::Bool(true));
        let pieces = call.get("partialArgs").and_then(Value::as_array);
        let last = call.is_empty() && self.partial.is_some();
        if !goes_on && pieces.is_none() && !last {
            return false;
        }
        if let Some(name) = call.get("name").and_then(Value::as_str) {
            self.end_partial(out);
            let id = call.get("id").and_then(Value::as_str).map(String::from);
            let id = id.unwrap_or_else(|| self.calls.invent(name));
            let mut rest = part.as_object().cloned().unwrap_or_default();
            rest.shift_remove("functionCall");
            self.partial = Some((id, String::from(name), json!({}), rest));
        }
        if let Some((_, _, arguments, _)) = &mut self.partial {
            pieces
                .into_iter()
                .flatten()
                .for_each(|piece| partial::add(arguments, piece));
        }
        if !goes_on {
            self.end_partial(out);
        }
        true
    }

    fn end_partial(&mut self, out: &mut Vec<Event>) {
        if let Some((id, name, arguments, rest)) = self.partial.take() {
            self.calls.called(&name, &id);
            let call = ir::ToolCall::from_value(id, name, arguments);
            let mut part = Part::from(PartBody::ToolCall(call));
            part.ext.extend(OWN, rest);
            self.part(part, out);
        }
    }
}
