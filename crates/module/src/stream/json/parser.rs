//! The strict push parser. Between pieces it stores only an incomplete token: a key, a number, an escape, a
//! code point. It builds no values; its memory is bounded by the nesting and by the longest key. After an
//! error it accepts no further input.

use super::JsonEvent;
use super::error::{JsonError, JsonErrorKind, PieceError};
use super::number;
use super::text::{Escape, PartialUtf8, cut_bytes, plain_run, simple_escape};
use crate::limits;
use crate::steps::count_steps;

#[derive(Debug)]
pub struct JsonParser {
    state: State,
    stack: Vec<Container>,
    /// Total bytes of the pieces before the current one.
    offset: u64,
    /// Whether the current string is a key.
    in_key: bool,
    /// A key that was split between pieces or contains escapes.
    key: String,
    /// A number that was split between pieces.
    token: Vec<u8>,
    /// The current keyword, and the number of its letters read so far.
    word: (JsonKeyword, usize),
    escape: Escape,
    cut: PartialUtf8,
    error: Option<JsonError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

#[derive(Clone, Copy, Debug)]
enum JsonKeyword {
    True,
    False,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value is required.
    Value,
    /// A value, or the end of an empty array.
    FirstElement,
    /// A key, or the end of an empty object.
    FirstKey,
    NextKey,
    Colon,
    /// A comma, or the end of the container.
    AfterValue,
    Text,
    Escape,
    Number,
    Word,
    Done,
    Failed,
}

impl Default for JsonParser {
    fn default() -> Self {
        Self::new()
    }
}

impl JsonParser {
    pub fn new() -> Self {
        Self {
            state: State::Value,
            stack: Vec::new(),
            offset: 0,
            in_key: false,
            key: String::new(),
            token: Vec::new(),
            word: (JsonKeyword::Null, 0),
            escape: Escape::default(),
            cut: PartialUtf8::default(),
            error: None,
        }
    }

    /// Parses the next piece of bytes and emits the events that it completes.
    #[inline]
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(JsonEvent<'_>)) -> Result<(), JsonError> {
        // Most small pieces are plain string content and take this fast path.
        if self.state == State::Text
            && !self.in_key
            && self.cut.is_empty()
            && plain_run(bytes) == bytes.len()
            && cut_bytes(bytes) == 0
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            self.plain_text(text, sink);
            return Ok(());
        }
        self.join(bytes, sink)
    }

    /// Parses the next piece of text. Do not mix with [`Self::push`] unless its pieces end at code point
    /// boundaries.
    #[inline]
    pub fn push_str(&mut self, text: &str, sink: &mut impl FnMut(JsonEvent<'_>)) -> Result<(), JsonError> {
        if self.state == State::Text && !self.in_key && plain_run(text.as_bytes()) == text.len() {
            self.plain_text(text, sink);
            return Ok(());
        }
        self.walk(text, sink)
    }

    #[inline]
    fn plain_text(&mut self, text: &str, sink: &mut impl FnMut(JsonEvent<'_>)) {
        count_steps(text.len());
        self.offset += text.len() as u64;
        if !text.is_empty() {
            sink(JsonEvent::TextDelta(text));
        }
    }

    /// Joins the code point split by the last piece, and stores the one split by this piece.
    fn join(&mut self, bytes: &[u8], sink: &mut impl FnMut(JsonEvent<'_>)) -> Result<(), JsonError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut bytes = bytes;
        while let Some(missing) = self.cut.missing()
            && !bytes.is_empty()
        {
            // A small piece is joined as a whole, so that it remains one event; of a large one only the
            // missing bytes are copied.
            let count = if bytes.len() <= PartialUtf8::JOINED_MAX {
                bytes.len()
            } else {
                missing
            };
            let (head, rest) = bytes.split_at(count);
            let (joined, length) = self.cut.join(head);
            self.piece(joined.get(..length).unwrap_or_default(), sink)?;
            bytes = rest;
        }
        self.piece(bytes, sink)
    }

    /// Parses a piece that begins at a code point boundary.
    fn piece(&mut self, bytes: &[u8], sink: &mut impl FnMut(JsonEvent<'_>)) -> Result<(), JsonError> {
        if bytes.is_empty() {
            return Ok(());
        }
        count_steps(bytes.len());
        let (whole, cut) = bytes.split_at(bytes.len() - cut_bytes(bytes));
        self.cut = PartialUtf8::of(cut);
        match std::str::from_utf8(whole) {
            Ok(text) => self.push_str(text, sink),
            Err(error) => {
                let valid = whole.get(..error.valid_up_to()).unwrap_or_default();
                self.walk(std::str::from_utf8(valid).unwrap_or_default(), sink)?;
                Err(self.fail(0, JsonErrorKind::BadUtf8))
            }
        }
    }

    fn walk(&mut self, text: &str, sink: &mut impl FnMut(JsonEvent<'_>)) -> Result<(), JsonError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut at = 0;
        while at < text.len() {
            match self.advance(text, at, sink) {
                Ok(next) => {
                    count_steps(next - at);
                    at = next;
                }
                Err((at, kind)) => return Err(self.fail(at, kind)),
            }
        }
        self.offset += text.len() as u64;
        Ok(())
    }

    /// Ends the input: completes a number at the very end, or reports a truncated document.
    pub fn finish(&mut self, sink: &mut impl FnMut(JsonEvent<'_>)) -> Result<(), JsonError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.state == State::Number && self.stack.is_empty() {
            let token = std::mem::take(&mut self.token);
            let number = number::read(&token).map_err(|kind| self.fail(0, kind))?;
            sink(JsonEvent::Number(number));
            self.state = State::Done;
        }
        if self.state != State::Done || !self.cut.is_empty() {
            return Err(self.fail(0, JsonErrorKind::UnexpectedEnd));
        }
        Ok(())
    }

    /// Whether the document is complete; only white space may follow.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    fn fail(&mut self, at: usize, kind: JsonErrorKind) -> JsonError {
        let offset = self.offset + at as u64;
        self.state = State::Failed;
        *self.error.insert(JsonError { kind, offset })
    }

    /// Consumes at least one byte from `at`, and the whole token if it is complete.
    fn advance(
        &mut self,
        text: &str,
        at: usize,
        sink: &mut impl FnMut(JsonEvent<'_>),
    ) -> Result<usize, PieceError> {
        match self.state {
            State::Text => self.text(text, at, sink),
            State::Escape => self.escape(text, at, sink),
            State::Number => self.number(text, at, sink),
            State::Word => self.word(text, at, sink),
            _ => {
                let blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
                let bytes = text.as_bytes();
                let mut next = at;
                while bytes.get(next).is_some_and(blank) {
                    next += 1;
                }
                match bytes.get(next) {
                    Some(byte) => self.structure(*byte, text, next, sink),
                    None => Ok(next),
                }
            }
        }
    }

    fn structure(
        &mut self,
        byte: u8,
        text: &str,
        at: usize,
        sink: &mut impl FnMut(JsonEvent<'_>),
    ) -> Result<usize, PieceError> {
        match (self.state, byte) {
            (State::FirstKey | State::NextKey, b'"') => {
                self.in_key = true;
                self.state = State::Text;
                return self.text(text, at + 1, sink);
            }
            (State::Colon, b':') => self.state = State::Value,
            (State::AfterValue, b',') => {
                self.state = match self.stack.last() {
                    Some(Container::Object) => State::NextKey,
                    _ => State::Value,
                };
            }
            (State::AfterValue | State::FirstKey, b'}') if self.stack.last() == Some(&Container::Object) => {
                self.leave();
                sink(JsonEvent::ObjectEnd);
            }
            (State::AfterValue | State::FirstElement, b']')
                if self.stack.last() == Some(&Container::Array) =>
            {
                self.leave();
                sink(JsonEvent::ArrayEnd);
            }
            (State::Value | State::FirstElement, _) => return self.value(byte, text, at, sink),
            (State::Done, _) => return Err((at, JsonErrorKind::TrailingText)),
            _ => return Err((at, JsonErrorKind::UnexpectedByte)),
        }
        Ok(at + 1)
    }

    fn value(
        &mut self,
        byte: u8,
        text: &str,
        at: usize,
        sink: &mut impl FnMut(JsonEvent<'_>),
    ) -> Result<usize, PieceError> {
        match byte {
            b'"' => {
                self.in_key = false;
                self.state = State::Text;
                return self.text(text, at + 1, sink);
            }
            b'{' => {
                self.enter(Container::Object, State::FirstKey, at)?;
                sink(JsonEvent::ObjectStart);
            }
            b'[' => {
                self.enter(Container::Array, State::FirstElement, at)?;
                sink(JsonEvent::ArrayStart);
            }
            b'-' | b'0'..=b'9' => {
                self.state = State::Number;
                return self.number(text, at, sink);
            }
            b't' | b'f' | b'n' => {
                let word = match byte {
                    b't' => JsonKeyword::True,
                    b'f' => JsonKeyword::False,
                    _ => JsonKeyword::Null,
                };
                self.word = (word, 0);
                self.state = State::Word;
                return self.word(text, at, sink);
            }
            _ => return Err((at, JsonErrorKind::UnexpectedByte)),
        }
        Ok(at + 1)
    }

    fn enter(&mut self, container: Container, state: State, at: usize) -> Result<(), PieceError> {
        if self.stack.len() >= limits::NESTING_MAX {
            return Err((at, JsonErrorKind::TooDeep));
        }
        self.stack.push(container);
        self.state = state;
        Ok(())
    }

    fn leave(&mut self) {
        self.stack.pop();
        self.value_ended();
    }

    fn value_ended(&mut self) {
        self.state = if self.stack.is_empty() {
            State::Done
        } else {
            State::AfterValue
        };
    }

    /// Parses plain text and simple escapes up to the end of the string.
    fn text(
        &mut self,
        text: &str,
        at: usize,
        sink: &mut impl FnMut(JsonEvent<'_>),
    ) -> Result<usize, PieceError> {
        let bytes = text.as_bytes();
        let mut at = at;
        loop {
            let end = at + plain_run(bytes.get(at..).unwrap_or_default());
            let run = text.get(at..end).unwrap_or_default();
            let after = bytes.get(end);
            if self.in_key
                && self.key.is_empty()
                && after == Some(&b'"')
                && run.len() <= limits::KEY_BYTES_MAX
            {
                self.state = State::Colon;
                sink(JsonEvent::Key(run));
                return Ok(end + 1);
            }
            self.emit_text(run, at, sink)?;
            match after {
                None => return Ok(end),
                Some(b'"') => {
                    self.close_text(sink);
                    return Ok(end + 1);
                }
                Some(b'\\') => {}
                Some(_) => return Err((end, JsonErrorKind::ControlCharacter)),
            }
            let Some(point) = bytes.get(end + 1).and_then(|byte| simple_escape(*byte)) else {
                self.state = State::Escape;
                self.escape = Escape::default();
                return self.escape(text, end + 1, sink);
            };
            self.emit_text(point, end, sink)?;
            at = end + 2;
        }
    }

    /// Emits a piece of text, or appends it to the current key.
    fn emit_text(
        &mut self,
        text: &str,
        at: usize,
        sink: &mut impl FnMut(JsonEvent<'_>),
    ) -> Result<(), PieceError> {
        if !self.in_key {
            if !text.is_empty() {
                sink(JsonEvent::TextDelta(text));
            }
        } else if self.key.len() + text.len() > limits::KEY_BYTES_MAX {
            return Err((at, JsonErrorKind::TooLong));
        } else {
            self.key.push_str(text);
        }
        Ok(())
    }

    fn close_text(&mut self, sink: &mut impl FnMut(JsonEvent<'_>)) {
        if self.in_key {
            self.state = State::Colon;
            sink(JsonEvent::Key(&self.key));
            self.key.clear();
        } else {
            self.value_ended();
            sink(JsonEvent::TextEnd);
        }
    }

    fn escape(
        &mut self,
        text: &str,
        at: usize,
        sink: &mut impl FnMut(JsonEvent<'_>),
    ) -> Result<usize, PieceError> {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        for (at, byte) in (at..).zip(rest) {
            if let Some(point) = self.escape.push(*byte).map_err(|kind| (at, kind))? {
                self.state = State::Text;
                self.emit_text(point.encode_utf8(&mut [0; 4]), at, sink)?;
                return Ok(at + 1);
            }
        }
        Ok(text.len())
    }

    fn number(
        &mut self,
        text: &str,
        at: usize,
        sink: &mut impl FnMut(JsonEvent<'_>),
    ) -> Result<usize, PieceError> {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let length = rest.iter().position(|byte| !number::is_part(*byte));
        let part = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        if self.token.len() + part.len() > limits::NUMBER_BYTES_MAX {
            return Err((at, JsonErrorKind::TooLong));
        }
        let number = if length.is_some() && self.token.is_empty() {
            number::read(part)
        } else {
            self.token.extend_from_slice(part);
            if length.is_none() {
                return Ok(text.len());
            }
            let number = number::read(&self.token);
            self.token.clear();
            number
        };
        let number = number.map_err(|kind| (at, kind))?;
        self.value_ended();
        sink(JsonEvent::Number(number));
        Ok(at + part.len())
    }

    fn word(
        &mut self,
        text: &str,
        at: usize,
        sink: &mut impl FnMut(JsonEvent<'_>),
    ) -> Result<usize, PieceError> {
        let (word, matched) = self.word;
        let (letters, event): (&[u8], _) = match word {
            JsonKeyword::True => (b"true", JsonEvent::Bool(true)),
            JsonKeyword::False => (b"false", JsonEvent::Bool(false)),
            JsonKeyword::Null => (b"null", JsonEvent::Null),
        };
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let left = letters.get(matched..).unwrap_or_default();
        let same = left.iter().zip(rest).take_while(|(a, b)| a == b).count();
        if same == left.len() {
            self.value_ended();
            sink(event);
        } else if same == rest.len() {
            self.word = (word, matched + same);
        } else {
            return Err((at + same, JsonErrorKind::UnexpectedByte));
        }
        Ok(at + same)
    }
}
