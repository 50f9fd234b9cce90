//! Positions in a file: from a byte range to line, column and the line's text.

use std::ops::Range;

/// Longest piece of a source line that a diagnostic carries, in bytes.
const SNIPPET_BYTES_MAX: usize = 240;

/// A position in one of the module's files. Lines and columns count from 1; columns count characters. Line 0
/// means the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// Characters underlined, at least 1.
    pub length: usize,
    /// The line's text, truncated if it is very long; empty for a whole file.
    pub snippet: String,
}

impl Location {
    /// The file as a whole.
    pub fn file(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
            length: 0,
            snippet: String::new(),
        }
    }
}

/// A file's text, for locating positions in it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// The location of a byte range. Ranges outside the text or inside a character are moved to the nearest
    /// boundary; a range over several lines is truncated at the end of its first.
    pub fn locate(&self, range: Range<usize>) -> Location {
        let start = floor(self.text, range.start);
        let end = floor(self.text, range.end.max(start));
        let (before, after) = self.text.split_at(start);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = after.find(['\n', '\r']).map_or(self.text.len(), |at| start + at);
        let line_text = self.text.get(line_start..line_end).unwrap_or_default();
        let lead = self.text.get(line_start..start).unwrap_or_default();
        let marked = self.text.get(start..end.min(line_end)).unwrap_or_default();
        Location {
            file: String::from(self.file),
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: lead.chars().count() + 1,
            length: marked.chars().count().max(1),
            snippet: String::from(
                line_text
                    .get(..floor(line_text, SNIPPET_BYTES_MAX))
                    .unwrap_or_default(),
            ),
        }
    }

    /// The location of a line and a column counted in characters, both from 1.
    pub fn locate_line(&self, line: usize, column: usize) -> Location {
        let start = self.line_start(line);
        let rest = self.text.get(start..).unwrap_or_default();
        let offset = rest
            .char_indices()
            .nth(column.saturating_sub(1))
            .map_or(rest.len(), |(at, _)| at);
        self.locate(start + offset..start + offset)
    }

    /// The location of a line and a column counted in bytes, both from 1.
    pub fn locate_byte_column(&self, line: usize, column: usize) -> Location {
        let start = self.line_start(line) + column.saturating_sub(1);
        self.locate(start..start)
    }

    fn line_start(&self, line: usize) -> usize {
        memchr::memchr_iter(b'\n', self.text.as_bytes())
            .nth(line.wrapping_sub(2))
            .filter(|_| line > 1)
            .map_or(if line > 1 { self.text.len() } else { 0 }, |at| at + 1)
    }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}
