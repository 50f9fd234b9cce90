//! Media refusals as errors of the module format.

use ::media::Error;
use module::Code;
use module::envelope::ErrorBody;
use module::media::check_input;
use serde_json::Value;

use crate::port::FetchError;

/// Why media is refused.
pub(super) type MediaError = Box<ErrorBody>;

/// Violations of the item's form, checked before any byte is loaded. Additional fields are permitted.
pub(super) fn violation(item: &Value) -> Option<MediaError> {
    let found = check_input(item);
    let first = found
        .into_iter()
        .find(|one| one.keyword != "additionalProperties")?;
    let body = ErrorBody::new(first.code, first.message);
    Some(Box::new(match item.get("media_type") {
        Some(media_type) if first.code == Code::E1010 => body.detail("media_type", media_type.clone()),
        _ => body,
    }))
}

/// Adds the location in the input.
pub(super) fn with_location(body: MediaError, index: usize, place: &str) -> MediaError {
    Box::new(body.detail("index", index).detail("path", place))
}

pub(super) fn refused(fault: &Error) -> MediaError {
    let code = match Code::find(fault.code()) {
        Some(code) => code,
        None => Code::E1013,
    };
    // IO errors of the server's disk are not exposed.
    let message = match fault {
        Error::Unreadable(_) => String::from("the media could not be read"),
        fault => fault.to_string(),
    };
    let mut body = ErrorBody::new(code, message);
    for (key, value) in fault.details() {
        body = body.detail(&key, value);
    }
    Box::new(body)
}

pub(super) fn fetching(error: &FetchError, url: &str) -> MediaError {
    if let FetchError::TooLarge { allowed, actual } = error {
        return refused(&Error::TooLarge {
            limit: ::media::Limit::Size,
            allowed: *allowed,
            actual: *actual,
        });
    }
    let mut body = ErrorBody::new(Code::E1012, error.to_string())
        .detail("url", redacted(url))
        .detail("reason", error.reason());
    if let FetchError::Status(status) = error {
        body = body.detail("status", *status);
    }
    Box::new(body)
}

pub(super) fn fetch_disabled(url: &str) -> MediaError {
    let body = ErrorBody::new(Code::E1012, "fetching URLs is disabled")
        .detail("url", redacted(url))
        .detail("reason", "fetch_disabled");
    Box::new(body)
}

/// The URL without query, fragment and user info, which may contain credentials.
fn redacted(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    match plain.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => String::from(plain),
    }
}

/// One message for missing, unreadable and forbidden files, so that it reveals nothing about other paths.
pub(super) fn no_file(path: &str) -> MediaError {
    let message = format!("no file {path} in the allowed folders");
    let body = ErrorBody::new(Code::E1006, message).detail("reason", "file_not_available");
    Box::new(body.suggest("name a file inside the allowed folders, or send its bytes"))
}

pub(super) fn internal(error: &std::io::Error) -> MediaError {
    tracing::error!(%error, "failed to store media");
    Box::new(ErrorBody::new(Code::E4000, "the media could not be stored"))
}

pub(super) fn inspection_timeout() -> MediaError {
    let body = ErrorBody::new(Code::E1013, "media inspection timed out");
    Box::new(body.detail("reason", "timeout"))
}

/// Temporary: space is released when other runs end.
pub fn storage_full() -> Box<ErrorBody> {
    let body = ErrorBody::new(Code::E4000, "the media store is full")
        .suggest("retry later; the operator can raise media.store_max")
        .detail("reason", "media_store_full")
        .detail("retry_after_ms", spill::limits::FULL_RETRY_MS);
    Box::new(body)
}
