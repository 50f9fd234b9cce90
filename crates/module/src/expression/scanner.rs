//! A cursor over an expression's text.

use super::ExpressionError;

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes `token` if it is next.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let hit = self.rest().starts_with(token);
        if hit {
            self.at += token.len();
        }
        hit
    }

    /// Consumes characters while `fits` is true.
    pub(super) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Consumes a string in single or double quotes; a backslash escapes the next character.
    pub(super) fn quoted(&mut self) -> Result<String, ExpressionError> {
        let start = self.at;
        let quote = self.peek();
        let mut chars = self.rest().char_indices().skip(1);
        let mut text = String::new();
        while let Some((offset, c)) = chars.next() {
            if Some(c) == quote {
                self.at += offset + c.len_utf8();
                return Ok(text);
            }
            if c == '\\' {
                text.extend(chars.next().map(|(_, escaped)| escaped));
            } else {
                text.push(c);
            }
        }
        Err(ExpressionError {
            at: start,
            message: String::from("the quoted string is not closed"),
        })
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Result<T, ExpressionError> {
        Err(ExpressionError {
            at: self.at,
            message: message.into(),
        })
    }

    /// Fails unless only whitespace follows.
    pub(super) fn end(&mut self) -> Result<(), ExpressionError> {
        self.space();
        if self.is_end() {
            Ok(())
        } else {
            self.fail(format!("unexpected `{}`", self.rest()))
        }
    }
}
