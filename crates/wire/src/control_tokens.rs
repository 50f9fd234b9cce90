//! Control tokens of gpt-oss harmony that a server failed to parse and returned as text. They are unrelated
//! to the Harmony Schema of the format document and indicate a broken chat template. The text is not
//! changed; a warning names the token.

use ir::event::Warning;

const MARKS: [&str; 7] = [
    "<|start|>",
    "<|channel|>",
    "<|message|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|constrain|>",
];
const LONGEST: usize = 13;

pub(crate) const CODE: &str = "gpt_oss_harmony_markers";

/// Scans the text of one response. A token may be split between pieces, so the end of the scanned text is
/// retained, shorter than a token.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlTokenDetector {
    tail: String,
    found: bool,
}

impl ControlTokenDetector {
    /// Another text begins; a token does not span two texts.
    pub(crate) fn begin(&mut self) {
        self.tail.clear();
    }

    /// The warning, the first time a token is found.
    pub(crate) fn look(&mut self, text: &str) -> Option<Warning> {
        if self.found || (self.tail.is_empty() && memchr::memchr(b'<', text.as_bytes()).is_none()) {
            return None;
        }
        self.tail.push_str(text);
        if let Some(mark) = MARKS.iter().find(|mark| self.tail.contains(**mark)) {
            self.found = true;
            self.tail = String::new();
            let message = format!(
                "the text contains `{mark}`, a control token of gpt-oss harmony: the server did not parse the model's output"
            );
            return Some(Warning::new(CODE, message));
        }
        self.tail = open_mark(&self.tail);
        None
    }
}

/// The end of the text, from where a token may have begun.
fn open_mark(text: &str) -> String {
    let start = text.ceil_char_boundary(text.len().saturating_sub(LONGEST - 1));
    let end = text.get(start..).unwrap_or_default();
    end.find('<')
        .and_then(|at| end.get(at..))
        .map_or_else(String::new, String::from)
}
