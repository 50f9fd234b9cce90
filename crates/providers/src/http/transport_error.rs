//! Transport errors and their messages. URLs and keys are excluded, because they may contain secrets.

use std::io;
use std::time::Duration;

use ir::{Error, ErrorKind, Phase};

use super::plaintext::Broken;

const UNRESOLVED: &str = "the name of the back-end's host cannot be resolved";
const REFUSED: &str = "the back-end refuses connections";
const UNREACHABLE: &str = "cannot connect to the back-end";

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
    Error::invalid_response(Phase::MidStream, message)
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

/// The same for the plaintext client.
pub(super) fn plain(error: &Broken, phase: Phase) -> Error {
    let (kind, phase, what) = match error {
        Broken::Slow(_) => (ErrorKind::Timeout, Phase::BeforeSend, "connecting timed out"),
        Broken::Resolve(_) => (ErrorKind::Network, Phase::BeforeSend, UNRESOLVED),
        Broken::Connect(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
            (ErrorKind::Network, Phase::BeforeSend, REFUSED)
        }
        Broken::Connect(_) => (ErrorKind::Network, Phase::BeforeSend, UNREACHABLE),
        Broken::Io(_) | Broken::Cut | Broken::Protocol(_) | Broken::LargeHead => {
            (ErrorKind::Network, phase, "the connection to the back-end broke")
        }
    };
    Error::new(kind, phase, format!("{what}: {error}"))
}

/// Error of the HTTP transport.
pub(super) fn transport(error: &reqwest::Error, phase: Phase) -> Error {
    let causes: Vec<String> = causes(error).map(ToString::to_string).collect();
    let refused = causes_io(error).any(|kind| kind == io::ErrorKind::ConnectionRefused);
    let mentions = |words: &[&str]| {
        let mut causes = causes.iter().map(|cause| cause.to_lowercase());
        causes.any(|cause| words.iter().any(|word| cause.contains(word)))
    };
    let (kind, phase, what) = if error.is_timeout() {
        (ErrorKind::Timeout, Phase::BeforeSend, "connecting timed out")
    } else if !error.is_connect() {
        (ErrorKind::Network, phase, "the connection to the back-end broke")
    } else {
        let what = match () {
            () if mentions(&["dns error"]) => UNRESOLVED,
            () if refused => REFUSED,
            () if mentions(&["certificate", "tls", "handshake"]) => {
                "no secure connection to the back-end can be made"
            }
            () if mentions(&["proxy", "tunnel"]) => "the proxy refused the connection to the back-end",
            () => UNREACHABLE,
        };
        (ErrorKind::Network, Phase::BeforeSend, what)
    };
    let deepest = causes.last().map(String::as_str).unwrap_or_default();
    Error::new(kind, phase, format!("{what}: {deepest}"))
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

fn causes_io(error: &reqwest::Error) -> impl Iterator<Item = io::ErrorKind> {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind)
}
