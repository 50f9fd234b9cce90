//! Credentials of a request: none, a key, or a signed token. Keys and tokens differ in form, so both are
//! accepted in the same header.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use secrecy::SecretString;
use tenancy::Secret;

use crate::limits;

#[derive(Debug)]
pub(super) enum RequestCredential {
    None,
    Key(Secret),
    Token(SecretString),
    /// Present, but neither.
    Unreadable,
}

impl RequestCredential {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let (authorization, api_key) = (headers.get(AUTHORIZATION), headers.get("x-api-key"));
        let shown = match (authorization, api_key) {
            (None, None) => return Self::None,
            (Some(value), _) => value.to_str().ok().and_then(bearer),
            (None, Some(value)) => value.to_str().ok(),
        };
        match shown.map(str::trim) {
            Some(text) if text.len() <= limits::CREDENTIAL_BYTES_MAX => Self::read(text),
            _ => Self::Unreadable,
        }
    }

    fn read(text: &str) -> Self {
        if let Some(secret) = Secret::parse(text) {
            return Self::Key(secret);
        }
        // Three parts between dots, as in RFC 7515.
        if text.split('.').count() == 3 && !text.contains(char::is_whitespace) {
            return Self::Token(SecretString::from(text));
        }
        Self::Unreadable
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, rest) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(rest)
}
