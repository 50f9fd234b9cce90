//! Errors on the way to an answer: a closed kind that decides how the error is handled, and facts for
//! diagnosis. Two codes are derived from the kind: the code of the canonical envelope (`RateLimited`) and
//! the E code of the specification (`E4002`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::envelope::Requirements;
use crate::operation::Operation;

/// Limit of reasons in a message.
const REASONS_SHOWN_MAX: usize = 5;

/// The kind decides retry, status, log level and whose fault it is. Nothing else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    InvalidRequest,
    /// The request names no model, and the back-end serves several.
    ModelRequired,
    Unsupported,
    Auth,
    Quota,
    RateLimited,
    ContextWindow,
    ContentPolicy,
    Timeout,
    Network,
    Upstream,
    InvalidResponse,
    /// The answer exceeds a limit of this server.
    AnswerTooLarge,
    NoCandidate,
    NotEnabled,
    Cancelled,
    Internal,
}

/// What has to change for a call to succeed. A caller can cause any number of faults of the first two kinds
/// with requests of its choice, so they never change the health of a back-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This request: another one may succeed on the same back-end.
    Request,
    /// The key of the back-end: another key of the same back-end may succeed.
    Credential,
    /// The back-end. The only fault that opens its breaker.
    BackEnd,
    /// This server or the client; the call is no evidence about the back-end.
    None,
}

/// Progress of the call when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    BeforeSend,
    BeforeFirstByte,
    MidStream,
}

/// Where a retry can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryScope {
    SameInstance,
    OtherInstance,
    OtherModel,
    Never,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(from = "ErrorJson", into = "ErrorJson")]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    pub phase: Phase,
    pub status: Option<u16>,
    pub retry_after_ms: Option<u64>,
    /// The provider's error code.
    pub provider_code: Option<String>,
    pub operation: Option<Operation>,
    /// Details of a failed back-end selection.
    pub search: Option<Box<RoutingFailure>>,
}

/// The requirements, the candidates that were checked, and why each was rejected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutingFailure {
    pub required: Option<Requirements>,
    pub candidates_checked: Vec<String>,
    /// Rejection reason by candidate.
    pub rejected_reasons: BTreeMap<String, String>,
}

impl RoutingFailure {
    /// The first reasons in one line: `name: reason; name: reason and 3 more`.
    fn reasons(&self) -> String {
        let reasons = self.rejected_reasons.iter();
        let shown = reasons
            .take(REASONS_SHOWN_MAX)
            .map(|(name, why)| format!("{name}: {why}"));
        let shown: Vec<String> = shown.collect();
        match self.rejected_reasons.len().saturating_sub(REASONS_SHOWN_MAX) {
            0 => shown.join("; "),
            more => format!("{} and {more} more", shown.join("; ")),
        }
    }
}

impl ErrorKind {
    /// Every kind, for tests over all of them.
    pub const ALL: [Self; 17] = [
        Self::InvalidRequest,
        Self::ModelRequired,
        Self::Unsupported,
        Self::Auth,
        Self::Quota,
        Self::RateLimited,
        Self::ContextWindow,
        Self::ContentPolicy,
        Self::Timeout,
        Self::Network,
        Self::Upstream,
        Self::InvalidResponse,
        Self::AnswerTooLarge,
        Self::NoCandidate,
        Self::NotEnabled,
        Self::Cancelled,
        Self::Internal,
    ];

    /// The only table of whose fault an error is.
    pub const fn fault(self) -> Fault {
        match self {
            // `NotEnabled` is a model or a path that the back-end does not have: the request named it.
            Self::InvalidRequest
            | Self::ModelRequired
            | Self::Unsupported
            | Self::ContextWindow
            | Self::ContentPolicy
            | Self::AnswerTooLarge
            | Self::NotEnabled => Fault::Request,
            Self::Auth | Self::Quota | Self::RateLimited => Fault::Credential,
            Self::Timeout | Self::Network | Self::Upstream | Self::InvalidResponse => Fault::BackEnd,
            Self::NoCandidate | Self::Cancelled | Self::Internal => Fault::None,
        }
    }

    /// The code of the canonical envelope.
    pub const fn canonical_code(self) -> &'static str {
        match self {
            Self::InvalidRequest | Self::ModelRequired | Self::ContextWindow | Self::ContentPolicy => {
                "InvalidRequest"
            }
            Self::Unsupported => "MissingCapabilities",
            Self::Quota | Self::RateLimited => "RateLimited",
            Self::Timeout => "Timeout",
            Self::NoCandidate => "NoCandidateBackend",
            Self::NotEnabled => "BackendNotEnabled",
            Self::Auth
            | Self::Network
            | Self::Upstream
            | Self::InvalidResponse
            | Self::AnswerTooLarge
            | Self::Cancelled
            | Self::Internal => "BackendError",
        }
    }

    /// The kind for a code of the canonical envelope, in either spelling.
    pub fn from_canonical(code: &str) -> Self {
        match code {
            "InvalidRequest" | "invalid_request" | "payload_mismatch" | "unsupported_version" => {
                Self::InvalidRequest
            }
            "MissingCapabilities"
            | "missing_capabilities"
            | "unsupported_operation"
            | "unsupported_streaming" => Self::Unsupported,
            "RateLimited" | "rate_limited" => Self::RateLimited,
            "Timeout" | "timeout" => Self::Timeout,
            "NoCandidateBackend" | "no_candidate_backend" => Self::NoCandidate,
            "BackendNotEnabled" | "backend_not_enabled" => Self::NotEnabled,
            "BackendError" | "upstream_error" => Self::Upstream,
            "network_error" => Self::Network,
            "invalid_response" | "serialization" => Self::InvalidResponse,
            _ => Self::Internal,
        }
    }

    /// The kind for an HTTP status without more precise information.
    pub const fn from_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Auth,
            402 => Self::Quota,
            // The back-end does not have the model or the path; another one may have it.
            404 => Self::NotEnabled,
            408 | 504 => Self::Timeout,
            413 => Self::ContextWindow,
            429 => Self::RateLimited,
            400..=499 => Self::InvalidRequest,
            500..=599 => Self::Upstream,
            _ => Self::InvalidResponse,
        }
    }
}

impl Error {
    pub fn new(kind: ErrorKind, phase: Phase, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            phase,
            status: None,
            retry_after_ms: None,
            provider_code: None,
            operation: None,
            search: None,
        }
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, Phase::BeforeSend, message)
    }

    pub fn invalid_response(phase: Phase, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidResponse, phase, message)
    }

    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    #[must_use]
    pub fn with_provider_code(mut self, code: Option<String>) -> Self {
        self.provider_code = code;
        self
    }

    /// The message, with the reasons of a failed back-end selection.
    pub fn message_with_reasons(&self) -> String {
        match &self.search {
            Some(search) if !search.rejected_reasons.is_empty() => {
                format!("{}: {}", self.message, search.reasons())
            }
            _ => self.message.clone(),
        }
    }

    /// The E code of the specification. Some kinds have two codes, depending on the phase.
    pub const fn cognitive_code(&self) -> &'static str {
        let before = matches!(self.phase, Phase::BeforeSend);
        let streaming = matches!(self.phase, Phase::MidStream);
        match self.kind {
            ErrorKind::InvalidRequest => "E1001",
            ErrorKind::ModelRequired => "E1002",
            ErrorKind::ContextWindow if before => "E1005",
            ErrorKind::ContextWindow => "E4003",
            ErrorKind::ContentPolicy => "E2004",
            ErrorKind::Timeout if streaming => "E2011",
            ErrorKind::Timeout => "E2002",
            ErrorKind::Network | ErrorKind::Cancelled if streaming => "E2010",
            ErrorKind::Network | ErrorKind::Upstream | ErrorKind::NoCandidate | ErrorKind::NotEnabled => {
                "E4001"
            }
            ErrorKind::RateLimited => "E4002",
            ErrorKind::Quota => "E4016",
            ErrorKind::Auth => "E4007",
            ErrorKind::Unsupported => "E4011",
            ErrorKind::InvalidResponse | ErrorKind::AnswerTooLarge => "E3001",
            ErrorKind::Cancelled | ErrorKind::Internal => "E4000",
        }
    }

    /// Where a retry can succeed, from the kind alone.
    pub const fn retry_scope(&self) -> RetryScope {
        match self.kind {
            ErrorKind::RateLimited | ErrorKind::Timeout | ErrorKind::Network | ErrorKind::Upstream => {
                RetryScope::SameInstance
            }
            ErrorKind::InvalidResponse
            | ErrorKind::AnswerTooLarge
            | ErrorKind::ModelRequired
            | ErrorKind::Quota
            | ErrorKind::Auth
            | ErrorKind::NotEnabled => RetryScope::OtherInstance,
            ErrorKind::ContextWindow | ErrorKind::ContentPolicy | ErrorKind::Unsupported => {
                RetryScope::OtherModel
            }
            ErrorKind::InvalidRequest
            | ErrorKind::NoCandidate
            | ErrorKind::Cancelled
            | ErrorKind::Internal => RetryScope::Never,
        }
    }

    /// Whether the same request may succeed later without being changed.
    pub const fn retryable(&self) -> bool {
        matches!(self.retry_scope(), RetryScope::SameInstance)
    }
}

/// The error in a canonical response: documented fields first, then additional facts.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ErrorJson {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Operation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    required: Option<Requirements>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    candidates_checked: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rejected_reasons: BTreeMap<String, String>,
    #[serde(default)]
    kind: Option<ErrorKind>,
    #[serde(default)]
    phase: Option<Phase>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_code: Option<String>,
}

impl From<Error> for ErrorJson {
    fn from(error: Error) -> Self {
        let retryable = error.retryable();
        let search = error.search.map(|search| *search).unwrap_or_default();
        Self {
            code: Some(String::from(error.kind.canonical_code())),
            retryable,
            message: error.message,
            operation: error.operation,
            required: search.required,
            candidates_checked: search.candidates_checked,
            rejected_reasons: search.rejected_reasons,
            kind: Some(error.kind),
            phase: Some(error.phase),
            status: error.status,
            retry_after_ms: error.retry_after_ms,
            provider_code: error.provider_code,
        }
    }
}

impl From<ErrorJson> for Error {
    fn from(json: ErrorJson) -> Self {
        let code = json.code.as_deref().unwrap_or_default();
        let kind = json.kind.unwrap_or_else(|| ErrorKind::from_canonical(code));
        // A code of another implementation is preserved.
        let foreign = (kind.canonical_code() != code && !code.is_empty()).then(|| String::from(code));
        let search = RoutingFailure {
            required: json.required,
            candidates_checked: json.candidates_checked,
            rejected_reasons: json.rejected_reasons,
        };
        Self {
            kind,
            message: json.message,
            phase: json.phase.unwrap_or(Phase::BeforeFirstByte),
            status: json.status,
            retry_after_ms: json.retry_after_ms,
            provider_code: json.provider_code.or(foreign),
            operation: json.operation,
            search: (search != RoutingFailure::default()).then(|| Box::new(search)),
        }
    }
}
