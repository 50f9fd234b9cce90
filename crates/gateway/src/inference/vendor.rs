//! The vendor API of a path. All errors of its paths, in the middleware or in a handler, are encoded in its
//! format.

use axum::http::HeaderMap;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    OpenAi,
    Anthropic,
}

const OPENAI: [&str; 5] = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/images",
    "/v1/audio",
];

impl Vendor {
    /// `None` for paths of other APIs.
    pub(crate) fn of(path: &str, headers: &HeaderMap) -> Option<Self> {
        let under = |root: &str| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if under("/v1/messages") {
            return Some(Self::Anthropic);
        }
        if OPENAI.iter().any(|root| under(root)) {
            return Some(Self::OpenAi);
        }
        // Both vendors list their models at this path; only one sends this header.
        under("/v1/models").then(|| match headers.contains_key("anthropic-version") {
            true => Self::Anthropic,
            false => Self::OpenAi,
        })
    }

    /// Name of the error schema.
    pub(crate) fn error_schema(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAiError",
            Self::Anthropic => "AnthropicError",
        }
    }

    /// Encodes an error.
    pub(super) fn error(self, status: u16, code: &str, message: &str, field: Option<&str>) -> Value {
        match self {
            Self::OpenAi => {
                let kind = openai_kind(status);
                json!({"error": {"message": message, "type": kind, "param": field, "code": code}})
            }
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": anthropic_kind(status), "message": message}})
            }
        }
    }
}

/// <https://platform.openai.com/docs/guides/error-codes>
fn openai_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "insufficient_quota",
        403 => "permission_error",
        408 | 504 => "timeout_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

/// <https://docs.anthropic.com/en/api/errors>
fn anthropic_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::Vendor;

    #[test]
    fn maps_paths_to_vendors() {
        let mut headers = HeaderMap::new();
        for (path, vendor) in [
            ("/v1/chat/completions", Some(Vendor::OpenAi)),
            ("/v1/responses", Some(Vendor::OpenAi)),
            ("/v1/audio/speech", Some(Vendor::OpenAi)),
            ("/v1/messages", Some(Vendor::Anthropic)),
            ("/v1/messages/count_tokens", Some(Vendor::Anthropic)),
            ("/v1/models", Some(Vendor::OpenAi)),
            ("/v1/models/a/b", Some(Vendor::OpenAi)),
            ("/v1/modules", None),
            ("/v1/modelsx", None),
            ("/run", None),
        ] {
            assert_eq!(Vendor::of(path, &headers), vendor, "{path}");
        }
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        assert_eq!(Vendor::of("/v1/models/x", &headers), Some(Vendor::Anthropic));
        assert_eq!(Vendor::of("/v1/responses", &headers), Some(Vendor::OpenAi));
    }
}
