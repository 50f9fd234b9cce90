//! Refusals as errors of the module language.

use ::media::Error;
use module::Code;
use module::envelope::ErrorBody;
use module::media::check_input;
use serde_json::Value;

use crate::limits;
use crate::port::FetchError;

/// Why media is not let in.
pub(super) type MediaError = Box<ErrorBody>;

/// What the form of an item says, before any byte is looked at. Fields of a module's own do no harm.
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

/// Where in the input it happened.
pub(super) fn with_location(body: MediaError, index: usize, place: &str) -> MediaError {
    Box::new(body.detail("index", index).detail("path", place))
}

pub(super) fn refused(fault: &Error) -> MediaError {
    let code = match Code::find(fault.code()) {
        Some(code) => code,
        None => Code::E1013,
    };
    // What our own disk says is nobody else's business.
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
        .detail("url", shown(url))
        .detail("reason", error.reason());
    if let FetchError::Status(status) = error {
        body = body.detail("status", *status);
    }
    Box::new(body)
}

pub(super) fn fetch_disabled(url: &str) -> MediaError {
    let body = ErrorBody::new(Code::E1012, "nothing is fetched here")
        .detail("url", shown(url))
        .detail("reason", "fetch_disabled");
    Box::new(body)
}

/// What stands behind a question mark may be a key, and a user's name belongs to nobody here.
fn shown(url: &str) -> String {
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

/// One word for missing, unreadable and out of bounds: whoever asks learns nothing about the rest.
pub(super) fn no_file(path: &str) -> MediaError {
    let message = format!("no file {path} in the folders that may be read");
    let body = ErrorBody::new(Code::E1006, message).detail("reason", "file_not_available");
    Box::new(body.suggest("name a file inside the allowed folders, or send its bytes"))
}

pub(super) fn internal(error: &std::io::Error) -> MediaError {
    tracing::error!(%error, "media could not be kept");
    Box::new(ErrorBody::new(Code::E4000, "the media could not be kept"))
}

pub(super) fn inspection_timeout() -> MediaError {
    let body = ErrorBody::new(Code::E1013, "looking at the media takes too long");
    Box::new(body.detail("reason", "timeout"))
}

/// There is room again when other runs have ended.
pub fn storage_full() -> Box<ErrorBody> {
    let body = ErrorBody::new(Code::E4000, "there is no room for the media of more runs")
        .suggest("try again later; whoever runs the server can raise media.store_max")
        .detail("reason", "media_store_full")
        .detail("retry_after_ms", limits::MEDIA_STORE_RETRY_MS);
    Box::new(body)
}
