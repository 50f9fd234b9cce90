//! An answer that may be calls. Its text is kept back for as long as it could still be the agreed form, and not
//! a byte longer: `{"calls":[..]}` and nothing around it. At the end it is calls, or it is the text that it was,
//! event for event. How the stream was cut makes no difference.

use std::collections::VecDeque;

use ir::event::{ADAPTED, Warning};
use ir::{Block, Delta, Event, FinishReason, RunId};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::limits;

/// What counts as a call here.
#[derive(Debug)]
pub(super) struct CallRules {
    pub(super) names: Vec<String>,
    /// More than one call may be made at once.
    pub(super) many: bool,
    /// Plain text is not what was asked for.
    pub(super) must: bool,
    /// Calls are looked for at all.
    pub(super) looks: bool,
    pub(super) run: RunId,
}

#[derive(Debug)]
pub(crate) struct CallParser {
    rule: CallRules,
    /// What is said before anything else.
    notices: Vec<Warning>,
    /// The text could still be calls.
    looks: bool,
    head: PrefixMatcher,
    text: String,
    /// Everything since the first block of text began.
    held: Vec<Event>,
    text_blocks: Vec<u32>,
    /// The last place of any block.
    top: u32,
    /// The back-end has called in its own way.
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

    /// How much of the answer is kept back.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.text.len()
    }

    /// Takes the next event in, and gives out what is decided.
    pub(crate) fn push(&mut self, event: Event, out: &mut VecDeque<Event>) {
        if matches!(event, Event::Error { .. }) {
            // Half a call is nothing to anybody, and whoever has shown nothing can be replaced.
            self.forget();
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
            event if self.looks => self.look(event, out),
            event => out.push_back(event),
        }
    }

    fn look(&mut self, event: Event, out: &mut VecDeque<Event>) {
        let goes_on = match &event {
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
            // Whoever calls or declines in its own way needs no other.
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
        if !goes_on {
            self.release(out);
        }
    }

    fn finish(&mut self, reason: FinishReason, out: &mut VecDeque<Event>) {
        // What was cut off is not what it would have become.
        let whole = !matches!(
            reason,
            FinishReason::Length | FinishReason::ContentFilter | FinishReason::Pause
        );
        match self.calls().filter(|_| whole) {
            Some(calls) => {
                self.tell(calls, out);
                let reason = FinishReason::ToolCalls;
                out.push_back(Event::Finish { reason });
            }
            None => {
                self.release(out);
                if self.rule.must && !self.called {
                    let message = "/payload/tool_choice: a call was asked for, and the model wrote text";
                    let warning = Warning::new(ADAPTED, message);
                    out.push_back(Event::Warning { warning });
                }
                out.push_back(Event::Finish { reason });
            }
        }
    }

    /// The calls that the text is, if it is nothing else.
    fn calls(&self) -> Option<Vec<(String, String)>> {
        if !self.looks || !self.head.is_whole() {
            return None;
        }
        let form: CallDocument<'_> = serde_json::from_str(&self.text).ok()?;
        let known =
            |call: &ParsedCall<'_>| self.rule.names.contains(&call.tool) && call.arguments.get().starts_with('{');
        let count = form.calls.len();
        if count == 0 || count > limits::CALLS_MAX || count > 1 && !self.rule.many {
            return None;
        }
        let calls = form.calls.into_iter();
        calls
            .map(|call| known(&call).then(|| (call.tool, String::from(call.arguments.get()))))
            .collect()
    }

    /// Says the calls in the place of the text.
    fn tell(&mut self, calls: Vec<(String, String)>, out: &mut VecDeque<Event>) {
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
        self.forget();
    }

    /// It is no call: everything that was kept back is said as it came.
    fn release(&mut self, out: &mut VecDeque<Event>) {
        out.extend(self.held.drain(..));
        self.forget();
    }

    fn forget(&mut self) {
        self.looks = false;
        self.held.clear();
        self.text = String::new();
    }
}

/// Unlike all others, and of letters that every dialect takes.
fn id(run: RunId, number: usize) -> String {
    let run = run.to_string();
    let run = run.strip_prefix("sess_").unwrap_or(&run);
    format!("call_{run}_{}", number + 1)
}

/// The agreed form; whatever has more or less in it is another.
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
    /// Word for word.
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// The beginning of the form, as far as it has come.
#[derive(Debug, Default)]
struct PrefixMatcher {
    matched: usize,
}

impl PrefixMatcher {
    const FORM: &'static [u8] = br#"{"calls":["#;
    /// Where white space may stand.
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
