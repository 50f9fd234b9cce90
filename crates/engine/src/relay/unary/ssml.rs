//! Marked-up speech as plain text: what is said stays, how it is said goes. Whatever is no mark stays as it
//! stands, so that a text that only looks like one loses nothing.

/// The text between the marks. A pause becomes a space, a substitute takes the place of what it stands for,
/// comments go, and the five names of characters are read.
pub(super) fn strip(marked: &str) -> String {
    let mut plain = String::with_capacity(marked.len());
    let mut rest = marked;
    // The name of a mark whose content is replaced.
    let mut substituted = false;
    while let Some(at) = rest.find(['<', '&']) {
        let (before, from) = rest.split_at(at);
        if !substituted {
            plain.push_str(before);
        }
        let (taken, said) = match from.starts_with('<') {
            true => mark(from, &mut substituted),
            false => name(from),
        };
        if taken == 0 {
            // A lone sign is text.
            let (sign, after) = from.split_at(1);
            if !substituted {
                plain.push_str(sign);
            }
            rest = after;
            continue;
        }
        plain.push_str(&said);
        rest = from.get(taken..).unwrap_or_default();
    }
    if !substituted {
        plain.push_str(rest);
    }
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ")
}

/// How many bytes a mark takes, and what is said in its place.
fn mark(from: &str, substituted: &mut bool) -> (usize, String) {
    if from.starts_with("<!--") {
        let end = from.find("-->").map_or(from.len(), |at| at + 3);
        return (end, String::new());
    }
    let begins = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '/' | '?' | '!');
    if !from.chars().nth(1).is_some_and(begins) {
        return (0, String::new());
    }
    let Some(end) = from.find('>') else {
        return (0, String::new());
    };
    let inside = from.get(1..end).unwrap_or_default();
    let word = inside.trim_start_matches('/');
    let word = word
        .split([' ', '/', '\t', '\r', '\n'])
        .next()
        .unwrap_or_default();
    let closes = inside.starts_with('/');
    let said = match word.to_ascii_lowercase().as_str() {
        "sub" if closes => {
            *substituted = false;
            String::new()
        }
        "sub" => match alias(inside) {
            Some(alias) => {
                *substituted = !inside.ends_with('/');
                alias
            }
            None => String::new(),
        },
        "break" | "p" | "s" | "speak" => String::from(" "),
        _ => String::new(),
    };
    (end + 1, said)
}

/// The value of `alias`.
fn alias(inside: &str) -> Option<String> {
    let (_, value) = inside.split_once("alias")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value
        .chars()
        .next()
        .filter(|letter| matches!(letter, '"' | '\''))?;
    let value = value.get(1..)?;
    Some(String::from(value.split(quote).next()?))
}

/// How many bytes the name of a character takes, and the character.
fn name(from: &str) -> (usize, String) {
    let known = [
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
    ];
    let found = known.iter().find(|(name, _)| from.starts_with(name));
    found.map_or((0, String::new()), |(name, sign)| {
        (name.len(), String::from(*sign))
    })
}
