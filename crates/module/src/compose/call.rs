//! Parses `@call:name(arguments)[options]` in a prompt. Does not run the call.

use std::ops::Range;

use memchr::memchr_iter;

use crate::limits;
use crate::manifest::Tier;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    pub name: &'a str,
    /// The text between the parentheses; `None` without them.
    pub arguments: Option<&'a str>,
    pub options: CallOptions,
    pub range: Range<usize>,
}

/// The options in brackets after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// The composition continues without the result if the call fails.
    pub optional: bool,
    /// The call may run in parallel with others. The composition still waits for its result.
    pub beside: bool,
    pub timeout_ms: Option<u64>,
    pub tier: Option<Tier>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    pub message: String,
    pub range: Range<usize>,
}

const MARK: &str = "@call:";

/// Every call in a text, in order.
pub fn calls(text: &str) -> impl Iterator<Item = Result<Call<'_>, CallError>> {
    let marks = memchr_iter(b'@', text.as_bytes());
    let marks = marks.filter(move |at| text.get(*at..).is_some_and(|rest| rest.starts_with(MARK)));
    marks.map(move |at| read(text, at))
}

fn read(text: &str, at: usize) -> Result<Call<'_>, CallError> {
    let start = at + MARK.len();
    let rest = text.get(start..).unwrap_or_default();
    let length = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
        .unwrap_or(rest.len());
    let name = rest.get(..length).unwrap_or_default();
    let mut end = start + length;
    let fail = |end: usize, message: &str| CallError {
        message: String::from(message),
        range: at..end,
    };
    if name.is_empty() {
        return Err(fail(end, "@call names no module"));
    }
    let mut arguments = None;
    if text.get(end..).is_some_and(|rest| rest.starts_with('(')) {
        let open = end;
        end = closing(text, end, b'(', b')')
            .ok_or_else(|| fail(end + 1, "`)` is missing after the arguments of @call"))?;
        arguments = text.get(open + 1..end - 1).map(str::trim);
    }
    let mut options = CallOptions::default();
    if text.get(end..).is_some_and(|rest| rest.starts_with('[')) {
        let open = end;
        end = closing(text, end, b'[', b']')
            .ok_or_else(|| fail(end + 1, "`]` is missing after the options of @call"))?;
        for option in text.get(open + 1..end - 1).unwrap_or_default().split(',') {
            options
                .read(option.trim())
                .map_err(|message| fail(end, &message))?;
        }
    }
    Ok(Call {
        name,
        arguments,
        options,
        range: at..end,
    })
}

/// The end of a bracketed part. Brackets nest; quotes do not matter, since arguments are free text.
fn closing(text: &str, start: usize, open: u8, close: u8) -> Option<usize> {
    let mut depth = 0usize;
    let bytes = text.as_bytes().get(start..)?;
    for (offset, &byte) in bytes.iter().enumerate().take(limits::CALL_BYTES_MAX) {
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth -= 1;
            if depth == 0 {
                return Some(start + offset + 1);
            }
        }
    }
    None
}

impl CallOptions {
    fn read(&mut self, option: &str) -> Result<(), String> {
        match option.split_once('=') {
            None if option == "async" => self.beside = true,
            None if option == "optional" => self.optional = true,
            Some(("timeout", value)) => {
                let time = duration_ms(value).ok_or_else(|| format!("`{option}` is not a timeout"))?;
                self.timeout_ms = Some(time);
            }
            Some(("tier", value)) => {
                let tiers = [Tier::Exec, Tier::Decision, Tier::Exploration];
                let tier = tiers.into_iter().find(|tier| tier.as_str() == value);
                self.tier = Some(tier.ok_or_else(|| format!("`{value}` is not a tier"))?);
            }
            _ => return Err(format!("`{option}` is not an option of @call")),
        }
        Ok(())
    }
}

/// `30s`, `1500ms`, or a bare number of seconds.
fn duration_ms(text: &str) -> Option<u64> {
    if let Some(number) = text.strip_suffix("ms") {
        return number.parse().ok();
    }
    let seconds: u64 = text.strip_suffix('s').unwrap_or(text).parse().ok()?;
    seconds.checked_mul(1_000)
}
