//! Finds the byte range of a pointer in YAML text, in one pass over the parser's events. Anchors are not
//! followed: a value behind an alias is located at the alias, which is its visible position.

use std::ops::Range;

use granit_parser::{Event, Parser};

use super::{EntryPart, Span, pointer};

/// The position of `pointer`; the nearest ancestor if it does not resolve.
pub fn yaml_place(text: &str, pointer: &str, part: EntryPart) -> Span {
    let target: Vec<String> = pointer::tokens(pointer).collect();
    let mut walk = Walk {
        target: &target,
        part,
        levels: Vec::new(),
        matched: 0,
        best: 0..0,
        exact: false,
    };
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        if walk.step(&event, span) {
            break;
        }
    }
    Span {
        range: trim(text, walk.best),
        exact: walk.exact,
    }
}

/// An open collection and its next entry.
enum Level {
    Sequence {
        index: usize,
    },
    Mapping {
        key: Option<String>,
        key_range: Range<usize>,
    },
}

struct Walk<'a> {
    target: &'a [String],
    part: EntryPart,
    levels: Vec<Level>,
    /// The number of leading levels that match the target.
    matched: usize,
    best: Range<usize>,
    exact: bool,
}

impl Walk<'_> {
    /// Processes one event; true if the result is final.
    fn step(&mut self, event: &Event<'_>, span: granit_parser::Span) -> bool {
        let range = span.byte_range().unwrap_or_default();
        match event {
            Event::Scalar(text, ..) => {
                if self.is_key_expected() {
                    self.set_key(text.as_ref(), range);
                    return false;
                }
                self.node(range) || self.leave_node()
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                if self.is_key_expected() {
                    self.set_key("", range);
                    return false;
                }
                self.node(range) || self.leave_node()
            }
            Event::SequenceStart(..) => {
                let done = self.node(range);
                self.levels.push(Level::Sequence { index: 0 });
                done
            }
            Event::MappingStart(..) => {
                if self.is_key_expected() {
                    self.set_key("", range.clone());
                    // A collection as a key: pointers cannot refer to the entry that follows.
                }
                let done = self.node(range);
                self.levels.push(Level::Mapping {
                    key: None,
                    key_range: 0..0,
                });
                done
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.levels.pop();
                self.matched = self.matched.min(self.levels.len());
                self.leave_node()
            }
            _ => false,
        }
    }

    fn is_key_expected(&self) -> bool {
        matches!(self.levels.last(), Some(Level::Mapping { key: None, .. }))
    }

    fn set_key(&mut self, text: &str, range: Range<usize>) {
        if let Some(Level::Mapping { key, key_range }) = self.levels.last_mut() {
            *key = Some(String::from(text));
            *key_range = range;
        }
    }

    /// Starts a value at the current position; true if it is the target.
    fn node(&mut self, range: Range<usize>) -> bool {
        let depth = self.levels.len();
        if depth == 0 {
            self.best = range;
            self.exact = self.target.is_empty();
            return self.exact;
        }
        if self.matched + 1 != depth {
            return false;
        }
        let Some(token) = self.target.get(depth - 1) else {
            return false;
        };
        let key_range = match self.levels.last() {
            Some(Level::Sequence { index }) if token.parse() == Ok(*index) => range.clone(),
            Some(Level::Mapping {
                key: Some(key),
                key_range,
            }) if key == token => key_range.clone(),
            _ => return false,
        };
        self.matched = depth;
        let last = depth == self.target.len();
        self.best = match (last, self.part) {
            (true, EntryPart::Value) if !range.is_empty() => range,
            _ => key_range,
        };
        self.exact = last;
        last
    }

    /// Ends the value at the current position and moves to the next entry.
    fn leave_node(&mut self) -> bool {
        if self.matched >= self.levels.len() && !self.levels.is_empty() && self.matched > 0 {
            self.matched = self.levels.len() - 1;
        }
        match self.levels.last_mut() {
            Some(Level::Sequence { index }) => *index += 1,
            Some(Level::Mapping { key, .. }) => *key = None,
            None => {}
        }
        false
    }
}

/// Block collections include trailing white space; the range ends at their last visible byte.
fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let Some(slice) = text.get(range.clone()) else {
        return range;
    };
    range.start..range.start + slice.trim_end().len().max(1)
}
