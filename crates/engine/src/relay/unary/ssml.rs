//! SSML to plain text. Text that is not valid markup stays unchanged, so that text that only resembles SSML
//! loses nothing.

/// The text content. Breaks become spaces, `sub` elements are replaced by their alias, comments are removed,
/// and the five predefined entities are decoded.
pub(super) fn strip(marked: &str) -> String {
    let mut plain = String::with_capacity(marked.len());
    let mut rest = marked;
    // Inside a `sub` element with an alias.
    let mut substituted = false;
    while let Some(at) = rest.find(['<', '&']) {
        let (before, from) = rest.split_at(at);
        if !substituted {
            plain.push_str(before);
        }
        let (taken, text) = match from.starts_with('<') {
            true => tag(from, &mut substituted),
            false => entity(from),
        };
        if taken == 0 {
            // A lone `<` or `&` is text.
            let (sign, after) = from.split_at(1);
            if !substituted {
                plain.push_str(sign);
            }
            rest = after;
            continue;
        }
        plain.push_str(&text);
        rest = from.get(taken..).unwrap_or_default();
    }
    if !substituted {
        plain.push_str(rest);
    }
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ")
}

/// The length of a tag in bytes, and its replacement.
fn tag(from: &str, substituted: &mut bool) -> (usize, String) {
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
    let text = match word.to_ascii_lowercase().as_str() {
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
    (end + 1, text)
}

/// The value of the attribute `alias`.
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

/// The length of an entity in bytes, and its character.
fn entity(from: &str) -> (usize, String) {
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
