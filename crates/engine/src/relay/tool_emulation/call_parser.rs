//! Parser of a reply that may be tool calls. Text is buffered as long as it can still be the agreed form,
//! which is `{"calls":[..]}` and nothing around it. At the end, the reply is either calls or the original
//! events, unchanged. The result does not depend on how the stream was split.

use std::collections::VecDeque;

use ir::event::{ADAPTED, Warning};
use ir::{Block, Delta, Event, FinishReason, RunId};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::limits;

/// Which calls are accepted.
#[derive(Debug)]
pub(super) struct CallRules {
    pub(super) names: Vec<String>,
    /// Several calls are allowed.
    pub(super) many: bool,
    /// A call is required.
    pub(super) must: bool,
    /// Whether to parse calls at all.
    pub(super) looks: bool,
    pub(super) run: RunId,
}

#[derive(Debug)]
pub(crate) struct CallParser {
    rule: CallRules,
    /// Warnings to emit before all other events.
    notices: Vec<Warning>,
    /// The text can still be calls.
    looks: bool,
    head: PrefixMatcher,
    text: String,
    /// All events since the start of the first text block.
    held: Vec<Event>,
    text_blocks: Vec<u32>,
    /// Highest block index so far.
    top: u32,
    /// The back-end made a native tool call.
    called: bool,
}

impl CallParser {
    pub(super) fn new(rule: CallRules, notices: Vec<Warning>) -> Self {
        Self {
            looks: rule.looks,
            rule,
            notices,
            head: PrefixMatcher::default(),
            text: String::new(),
            held: Vec::new(),
            text_blocks: Vec::new(),
            top: 0,
            called: false,
        }
    }

    /// Number of buffered text bytes.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.text.len()
    }

    /// Adds an event, and appends the events that are decided.
    pub(crate) fn push(&mut self, event: Event, out: &mut VecDeque<Event>) {
        if matches!(event, Event::Error { .. }) {
            // An incomplete call is discarded; an attempt without output can be replaced.
            self.clear();
            out.push_back(event);
            return;
        }
        let notices = std::mem::take(&mut self.notices);
        out.extend(notices.into_iter().map(|warning| Event::Warning { warning }));
        if let Event::BlockStart { index, block } = &event {
            self.top = self.top.max(*index);
            self.called |= matches!(block, Block::ToolCall { .. });
        }
        match event {
            Event::Finish { reason } => self.finish(reason, out),
            event if self.looks => self.inspect(event, out),
            event => out.push_back(event),
        }
    }

    fn inspect(&mut self, event: Event, out: &mut VecDeque<Event>) {
        let undecided = match &event {
            Event::BlockStart {
                index,
                block: Block::Text,
            } => {
                self.text_blocks.push(*index);
                true
            }
            Event::BlockDelta {
                index,
                delta: Delta::Text { text },
            } if self.text_blocks.contains(index) => {
                self.text.push_str(text);
                self.head.take(text) && self.text.len() <= limits::CALLS_BYTES_MAX
            }
            // A native tool call or a refusal takes precedence.
            Event::BlockStart {
                block: Block::ToolCall { .. } | Block::Refusal,
                ..
            } => false,
            _ => true,
        };
        match self.text_blocks.is_empty() {
            true => out.push_back(event),
            false => self.held.push(event),
        }
        if !undecided {
            self.flush(out);
        }
    }

    fn finish(&mut self, reason: FinishReason, out: &mut VecDeque<Event>) {
        // A truncated text is not parsed.
        let whole = !matches!(
            reason,
            FinishReason::Length | FinishReason::ContentFilter | FinishReason::Pause
        );
        match self.calls().filter(|_| whole) {
            Some(calls) => {
                self.emit_calls(calls, out);
                let reason = FinishReason::ToolCalls;
                out.push_back(Event::Finish { reason });
            }
            None => {
                self.flush(out);
                if self.rule.must && !self.called {
                    let message =
                        "/payload/tool_choice: a call was required, but the model replied with text";
                    let warning = Warning::new(ADAPTED, message);
                    out.push_back(Event::Warning { warning });
                }
                out.push_back(Event::Finish { reason });
            }
        }
    }

    /// The calls, if the text is exactly the agreed form.
    fn calls(&self) -> Option<Vec<(String, String)>> {
        if !self.looks || !self.head.is_whole() {
            return None;
        }
        let form: CallDocument<'_> = serde_json::from_str(&self.text).ok()?;
        let known = |call: &ParsedCall<'_>| {
            self.rule.names.contains(&call.tool) && call.arguments.get().starts_with('{')
        };
        let count = form.calls.len();
        if count == 0 || count > limits::CALLS_MAX || count > 1 && !self.rule.many {
            return None;
        }
        let calls = form.calls.into_iter();
        calls
            .map(|call| known(&call).then(|| (call.tool, String::from(call.arguments.get()))))
            .collect()
    }

    /// Emits the calls in place of the text.
    fn emit_calls(&mut self, calls: Vec<(String, String)>, out: &mut VecDeque<Event>) {
        let blocks = std::mem::take(&mut self.text_blocks);
        let is_text = |event: &Event| match event {
            Event::BlockStart { index, .. } | Event::BlockDelta { index, .. } | Event::BlockEnd { index } => {
                blocks.contains(index)
            }
            _ => false,
        };
        out.extend(self.held.drain(..).filter(|event| !is_text(event)));
        let first = blocks.first().copied().unwrap_or_default();
        let places = std::iter::once(first).chain(self.top.saturating_add(1)..);
        for (number, (index, (name, json))) in places.zip(calls).enumerate() {
            let id = id(self.rule.run, number);
            let block = Block::ToolCall { id, name };
            let delta = Delta::ToolArguments { json };
            out.push_back(Event::BlockStart { index, block });
            out.push_back(Event::BlockDelta { index, delta });
            out.push_back(Event::BlockEnd { index });
        }
        self.clear();
    }

    /// Not a call: emits all buffered events unchanged.
    fn flush(&mut self, out: &mut VecDeque<Event>) {
        out.extend(self.held.drain(..));
        self.clear();
    }

    fn clear(&mut self) {
        self.looks = false;
        self.held.clear();
        self.text = String::new();
    }
}

/// Unique per run, with characters that every dialect accepts.
fn id(run: RunId, number: usize) -> String {
    let run = run.to_string();
    let run = run.strip_prefix("sess_").unwrap_or(&run);
    format!("call_{run}_{}", number + 1)
}

/// The agreed form; no other field is allowed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallDocument<'a> {
    #[serde(borrow)]
    calls: Vec<ParsedCall<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParsedCall<'a> {
    tool: String,
    /// Raw JSON, byte for byte.
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// Matches the start of the form incrementally.
#[derive(Debug, Default)]
struct PrefixMatcher {
    matched: usize,
}

impl PrefixMatcher {
    const FORM: &'static [u8] = br#"{"calls":["#;
    /// Positions where white space is allowed.
    const GAPS: [usize; 4] = [0, 1, 8, 9];

    /// Whether the text can still be the form.
    fn take(&mut self, text: &str) -> bool {
        for byte in text.bytes() {
            match Self::FORM.get(self.matched) {
                None => return true,
                Some(next) if *next == byte => self.matched += 1,
                Some(_) if is_space(byte) && Self::GAPS.contains(&self.matched) => {}
                Some(_) => return false,
            }
        }
        true
    }

    fn is_whole(&self) -> bool {
        self.matched == Self::FORM.len()
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
