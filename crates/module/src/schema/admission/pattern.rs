//! The cost of regular expressions: how long one is with its counted repetitions written out, and whether it is
//! matched by backtracking.

use std::iter::Peekable;
use std::str::Chars;

/// Whether a pattern has look-around, a reference to a group or another construct that is not matched in
/// linear time.
pub(super) fn backtracks(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    bytes.windows(3).any(|it| it.starts_with(b"(?") && it[2] != b':')
        || bytes.windows(2).any(|it| {
            matches!(
                it,
                [b'\\', b'1'..=b'9' | b'k' | b'g'] | [b'+' | b'*' | b'?' | b'}', b'+']
            )
        })
}

/// An estimate that is never too low: a character counts as one, and so does an escape or a character class.
pub(super) fn written_out(pattern: &str) -> usize {
    let mut chars = pattern.chars().peekable();
    // The lengths of the open groups, and of the last atom in each.
    let mut open: Vec<(usize, usize)> = vec![(0, 0)];
    while let Some(char) = chars.next() {
        let atom = match char {
            '\\' => {
                chars.next();
                1
            }
            '[' => {
                skip_class(&mut chars);
                1
            }
            '(' => {
                open.push((0, 0));
                continue;
            }
            ')' if open.len() > 1 => open.pop().map_or(0, |(length, _)| length.saturating_add(1)),
            '{' => {
                if let (Some(count), Some((length, last))) = (count(&mut chars), open.last_mut()) {
                    let more = last.saturating_mul(count.saturating_sub(1));
                    *last = last.saturating_add(more);
                    *length = length.saturating_add(more);
                    continue;
                }
                1
            }
            _ => 1,
        };
        if let Some((length, last)) = open.last_mut() {
            *length = length.saturating_add(atom);
            *last = atom;
        }
    }
    open.iter()
        .fold(0, |sum, (length, _)| sum.saturating_add(*length))
}

fn skip_class(chars: &mut Peekable<Chars<'_>>) {
    while let Some(char) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            ']' => return,
            _ => {}
        }
    }
}

/// The larger number of `{n}`, `{n,}` or `{n,m}` behind the brace; `None` if it is a literal brace.
fn count(chars: &mut Peekable<Chars<'_>>) -> Option<usize> {
    let rest = chars.clone();
    let text: String = rest.take_while(|char| matches!(char, '0'..='9' | ',')).collect();
    let numbers = text.split(',').filter(|number| !number.is_empty());
    let most = numbers.map(|number| number.parse().unwrap_or(usize::MAX)).max()?;
    let mut behind = chars.clone();
    (behind.nth(text.len()) == Some('}')).then(|| {
        *chars = behind;
        most
    })
}
