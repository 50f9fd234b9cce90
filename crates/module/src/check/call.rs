//! `@call:name(arguments)[options]` in a prompt, taken apart without being carried out.

use std::ops::Range;

use crate::limits;
use crate::manifest::Tier;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    pub(crate) optional: bool,
    pub(crate) range: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallProblem {
    pub(crate) message: String,
    pub(crate) range: Range<usize>,
}

const MARK: &str = "@call:";

/// Every call in a text, in order.
pub(crate) fn calls(text: &str) -> impl Iterator<Item = Result<Call<'_>, CallProblem>> {
    text.match_indices(MARK).map(move |(at, _)| read(text, at))
}

fn read(text: &str, at: usize) -> Result<Call<'_>, CallProblem> {
    let start = at + MARK.len();
    let rest = text.get(start..).unwrap_or_default();
    let length = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
        .unwrap_or(rest.len());
    let name = rest.get(..length).unwrap_or_default();
    let mut end = start + length;
    let fail = |end: usize, message: &str| CallProblem {
        message: String::from(message),
        range: at..end,
    };
    if name.is_empty() {
        return Err(fail(end, "@call names no module"));
    }
    if text.get(end..).is_some_and(|rest| rest.starts_with('(')) {
        end = closing(text, end, b'(', b')')
            .ok_or_else(|| fail(end + 1, "the arguments of @call are never closed"))?;
    }
    let mut optional = false;
    if text.get(end..).is_some_and(|rest| rest.starts_with('[')) {
        let open = end;
        end = closing(text, end, b'[', b']')
            .ok_or_else(|| fail(end + 1, "the options of @call are never closed"))?;
        for option in text.get(open + 1..end - 1).unwrap_or_default().split(',') {
            let option = option.trim();
            option_problem(option).map_or(Ok(()), |message| Err(fail(end, &message)))?;
            optional |= option == "optional";
        }
    }
    Ok(Call {
        name,
        optional,
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

fn option_problem(option: &str) -> Option<String> {
    match option.split_once('=') {
        None if matches!(option, "async" | "optional") => None,
        Some(("timeout", value)) => {
            let number = value
                .strip_suffix("ms")
                .or_else(|| value.strip_suffix('s'))
                .unwrap_or(value);
            let good = number.parse::<u64>().is_ok();
            (!good).then(|| format!("`{option}` is not a timeout"))
        }
        Some(("tier", value)) => {
            let tiers = [Tier::Exec, Tier::Decision, Tier::Exploration];
            let good = tiers.iter().any(|tier| tier.as_str() == value);
            (!good).then(|| format!("`{value}` is not a tier"))
        }
        _ => Some(format!("`{option}` is not an option of @call")),
    }
}
