//! A long text in a line of the log: its length is in the line's JSON, the text itself follows it unescaped.
//! A text that would break the line is written within the JSON, as all were once.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Text<'a> {
    /// So many bytes behind the JSON.
    Behind(usize),
    Within(Cow<'a, str>),
}

impl<'a> Text<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        if text.as_bytes().contains(&b'\n') {
            Self::Within(Cow::Borrowed(text))
        } else {
            Self::Behind(text.len())
        }
    }

    /// Writes the text that this was made of, if it does not stand within.
    pub(super) fn put_behind(&self, text: &str, line: &mut Vec<u8>) {
        if let Self::Behind(_) = self {
            line.extend_from_slice(text.as_bytes());
        }
    }
}

/// What stands behind the JSON of a line.
pub(super) struct Tail<'t>(&'t str);

impl<'t> Tail<'t> {
    /// Reads the JSON at the start, and makes something of it and of what stands behind it.
    pub(super) fn behind<J, T>(
        line: &'t str,
        make: impl FnOnce(J, &mut Self) -> Option<T>,
    ) -> Option<(T, Self)>
    where
        J: Deserialize<'t>,
    {
        let mut values = serde_json::Deserializer::from_str(line).into_iter::<J>();
        let json = values.next()?.ok()?;
        let mut tail = Self(line.get(values.byte_offset()..)?);
        Some((make(json, &mut tail)?, tail))
    }

    /// The next text, in the order in which they were written.
    pub(super) fn take<'s>(&mut self, text: &'s Text<'_>) -> Option<&'s str>
    where
        't: 's,
    {
        match text {
            Text::Within(text) => Some(text),
            Text::Behind(bytes) => {
                let (text, rest) = self.0.split_at_checked(*bytes)?;
                self.0 = rest;
                Some(text)
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
