//! Replaces a secret in a text from another source: log lines, recordings, messages of vendors. A short secret
//! is replaced only where it stands alone, because it may also be a part of ordinary words.

use std::borrow::Cow;

use memchr::memmem;

use crate::limits::SECRET_WORD_BYTES_MAX;

/// The text with `mark` in place of each occurrence of the secret.
pub fn redact<'a>(text: &'a [u8], secret: &[u8], mark: &str) -> Cow<'a, [u8]> {
    if secret.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = Vec::new();
    let mut copied = 0;
    for at in memmem::find_iter(text, secret) {
        let end = at + secret.len();
        if secret.len() <= SECRET_WORD_BYTES_MAX && !is_word(text, at, end) {
            continue;
        }
        clean.extend_from_slice(text.get(copied..at).unwrap_or_default());
        clean.extend_from_slice(mark.as_bytes());
        copied = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    clean.extend_from_slice(text.get(copied..).unwrap_or_default());
    Cow::Owned(clean)
}

/// The same for a text. Both it and the secret are UTF-8, and so is what is left of it.
pub(crate) fn redact_text(text: &mut String, secret: &str, mark: &str) {
    if let Cow::Owned(clean) = redact(text.as_bytes(), secret.as_bytes(), mark) {
        *text = String::from_utf8_lossy(&clean).into_owned();
    }
}

/// Whether neither side of the range is a letter or a digit. Bytes of other characters than ASCII count as letters.
fn is_word(text: &[u8], start: usize, end: usize) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let before = start.checked_sub(1).and_then(|at| text.get(at));
    !before.is_some_and(is_letter) && !text.get(end).is_some_and(is_letter)
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn long_secrets_are_replaced_everywhere_and_short_ones_as_words() {
        for (secret, text, clean) in [
            ("sk-canary-0123", "nothing here", "nothing here"),
            ("sk-canary-0123", "sk-canary-0123sk-canary-0123 b", "****** b"),
            (
                "EMPTY",
                "Bearer EMPTY, EMPTYNESS, \"EMPTY\"",
                "Bearer ***, EMPTYNESS, \"***\"",
            ),
            ("x", "x=x extra ax", "***=*** extra ax"),
            ("k1", "?key=k1&n=k12", "?key=***&n=k12"),
            ("ab", "äab ab", "äab ***"),
            ("", "a", "a"),
        ] {
            assert_eq!(
                redact(text.as_bytes(), secret.as_bytes(), "***"),
                clean.as_bytes()
            );
        }
    }
}
