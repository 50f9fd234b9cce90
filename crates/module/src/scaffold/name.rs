//! Rules for module names.

use std::fmt;

/// Longest name of a module.
const NAME_CHARS_MAX: usize = 64;

/// Prefixes reserved for the modules of the format.
const RESERVED: &[&str] = &["cognitive-", "cm-", "core-"];

/// Why a name is invalid, with a valid suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    pub message: String,
    pub suggestion: Option<String>,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NameError {}

/// Lower case letters, digits and hyphens, a letter first.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let refuse = |message: String| {
        let suggestion = suggest(name).filter(|better| better != name && problem(better).is_none());
        Err(NameError { message, suggestion })
    };
    match problem(name) {
        None => Ok(()),
        Some(problem) => refuse(format!("invalid module name `{name}`: {problem}")),
    }
}

fn problem(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() {
        return Some(String::from("the name is empty"));
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some(String::from("a name begins with a lower case letter"));
    }
    if let Some(other) = name.chars().find(|c| !allowed(*c)) {
        let message = format!("`{other}` is not a lower case letter, a digit or a hyphen");
        return Some(message);
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return Some(format!("a name has at most {NAME_CHARS_MAX} characters"));
    }
    let reserved = RESERVED.iter().find(|start| name.starts_with(**start))?;
    Some(format!("names that begin with `{reserved}` are reserved"))
}

/// The name of the folder for a display name; `None` if it has letters without a Latin spelling here.
pub fn derive_name(title: &str) -> Option<String> {
    let mut latin = String::new();
    for c in title.to_lowercase().chars() {
        match spelling(c) {
            Some(letters) => latin.push_str(letters),
            None if c.is_ascii() || !c.is_alphanumeric() => latin.push(c),
            None => return None,
        }
    }
    suggest(&latin).filter(|name| problem(name).is_none())
}

/// A lower case letter of a European language in letters from a to z.
fn spelling(c: char) -> Option<&'static str> {
    Some(match c {
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ę' | 'ě' => "e",
        'ğ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'ı' => "i",
        'ł' | 'ľ' => "l",
        'ñ' | 'ń' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'ō' | 'ő' => "o",
        'ö' | 'œ' => "oe",
        'ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ß' => "ss",
        'ť' | 'ţ' | 'ț' => "t",
        'þ' => "th",
        'ù' | 'ú' | 'û' | 'ū' | 'ů' | 'ű' => "u",
        'ü' => "ue",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => return None,
    })
}

/// A valid name derived from `name`.
fn suggest(name: &str) -> Option<String> {
    let mut better = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lower {
            better.push('-');
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        match c {
            c if c.is_ascii_alphanumeric() => better.push(c.to_ascii_lowercase()),
            _ if !better.ends_with('-') => better.push('-'),
            _ => {}
        }
    }
    let mut better = better.trim_matches(|c: char| c == '-' || c.is_ascii_digit());
    while let Some(rest) = RESERVED.iter().find_map(|start| better.strip_prefix(start)) {
        better = rest;
    }
    let cut: String = better.chars().take(NAME_CHARS_MAX).collect();
    let cut = cut.trim_end_matches('-');
    (!cut.is_empty()).then(|| String::from(cut))
}

#[cfg(test)]
mod tests {
    use super::{check_name, derive_name};

    #[test]
    fn names_are_derived_from_display_names() {
        for (title, name) in [
            ("Invoice reader", Some("invoice-reader")),
            ("Rechnungen prüfen (Größe)", Some("rechnungen-pruefen-groesse")),
            ("Vérifier l’état", Some("verifier-l-etat")),
            ("发票审核", None),
            ("发票 OCR", None),
            ("Проверка", None),
            ("!!!", None),
        ] {
            assert_eq!(derive_name(title).as_deref(), name, "{title}");
        }
    }

    #[test]
    fn invalid_names_are_refused_with_suggestion() {
        let (long, cut) = ("a".repeat(65), &*"a".repeat(64));
        for (name, better) in [
            ("code-reviewer", None),
            ("x2", None),
            ("", Some(None)),
            ("MyModule", Some(Some("my-module"))),
            ("my_module", Some(Some("my-module"))),
            ("My  Module!", Some(Some("my-module"))),
            ("2fast", Some(Some("fast"))),
            ("../escape", Some(Some("escape"))),
            ("core-x", Some(Some("x"))),
            ("审查", Some(None)),
            (long.as_str(), Some(Some(cut))),
        ] {
            let error = check_name(name).err();
            let found = error.as_ref().map(|error| error.suggestion.as_deref());
            assert_eq!(found, better, "{name}");
        }
    }
}
