//! Transport errors and their messages. URLs and keys are excluded, because they may contain secrets.

use std::io;
use std::time::Duration;

use hyper_util::client::legacy;
use ir::{Error, ErrorKind, Phase};

pub(super) fn idle_timeout(phase: Phase, idle: Duration) -> Error {
    let message = format!("no data from the back-end for {} ms", idle.as_millis());
    Error::new(ErrorKind::Timeout, phase, message)
}

pub(super) fn total_timeout(phase: Phase, total: Duration) -> Error {
    let message = format!("the answer was not complete after {} ms", total.as_millis());
    Error::new(ErrorKind::Timeout, phase, message)
}

pub(super) fn too_large(limit: usize) -> Error {
    let message = format!("the answer is larger than {limit} bytes");
    Error::new(ErrorKind::AnswerTooLarge, Phase::MidStream, message)
}

pub(super) fn unexpected_content_type(content_type: &str) -> Error {
    let shown: String = content_type
        .chars()
        .filter(|letter| !letter.is_control())
        .take(80)
        .collect();
    let message = format!("the back-end answered with `{shown}`, which is not a content type of its dialect");
    Error::invalid_response(Phase::BeforeFirstByte, message)
}

/// A request without a response.
pub(super) fn no_response(error: &legacy::Error) -> Error {
    let causes: Vec<&(dyn std::error::Error + 'static)> = causes(error).collect();
    let deepest = causes.last().map(ToString::to_string).unwrap_or_default();
    if !error.is_connect() {
        return broken(Phase::BeforeFirstByte, &deepest);
    }
    let mut kinds = causes
        .iter()
        .filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    let mentions = |words: &[&str]| {
        let mut causes = causes.iter().map(|cause| cause.to_string().to_lowercase());
        causes.any(|cause| words.iter().any(|word| cause.contains(word)))
    };
    let (kind, what) = match kinds.next_back() {
        Some(io::ErrorKind::TimedOut) => (ErrorKind::Timeout, "connecting timed out"),
        _ if mentions(&["dns error"]) => (
            ErrorKind::Network,
            "the name of the back-end's host cannot be resolved",
        ),
        Some(io::ErrorKind::ConnectionRefused) => (ErrorKind::Network, "the back-end refuses connections"),
        _ if mentions(&["certificate", "tls", "handshake"]) => (
            ErrorKind::Network,
            "no secure connection to the back-end can be made",
        ),
        _ if mentions(&["proxy", "tunnel", "socks"]) => (
            ErrorKind::Network,
            "the proxy refused the connection to the back-end",
        ),
        _ => (ErrorKind::Network, "cannot connect to the back-end"),
    };
    Error::new(kind, Phase::BeforeSend, format!("{what}: {deepest}"))
}

pub(super) fn large_head() -> Error {
    broken(Phase::BeforeFirstByte, "the head of the answer is too large")
}

/// A response that broke off.
pub(super) fn broken_body(error: &hyper::Error) -> Error {
    let deepest = causes(error)
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string);
    broken(Phase::MidStream, &deepest)
}

fn broken(phase: Phase, cause: &str) -> Error {
    let message = format!("the connection to the back-end broke: {cause}");
    Error::new(ErrorKind::Network, phase, message)
}

fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| cause.source())
}
