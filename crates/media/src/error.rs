//! Errors of media validation, each with its code and the details documented for that code.

use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A media type that is not accepted, or that cannot be inspected.
    #[error("{} is not accepted", .media_type.as_deref().unwrap_or("media of an unknown type"))]
    Unsupported {
        media_type: Option<String>,
        allowed: Vec<String>,
    },
    #[error("the media exceeds its {} limit: {actual}, allowed {allowed}", .limit.as_str())]
    TooLarge { limit: Limit, allowed: u64, actual: u64 },
    #[error("the media cannot be decoded: {reason}")]
    Corrupt { reason: String },
    #[error("the bytes do not match the declared type {declared}")]
    Mismatch {
        declared: String,
        detected: Option<String>,
        magic_bytes: String,
    },
    #[error("{width} by {height} is larger than {} by {} pixels", .allowed.0, .allowed.1)]
    TooWide {
        width: u64,
        height: u64,
        allowed: (u64, u64),
    },
    #[error("{width} by {height} is smaller than {allowed} pixels on a side")]
    TooSmall { width: u64, height: u64, allowed: u64 },
    #[error("{pixels} pixels exceed the limit of {allowed}")]
    TooManyPixels { pixels: u64, allowed: u64 },
    #[error("the {algorithm} checksum does not match the declared value")]
    Checksum {
        algorithm: String,
        expected: String,
        actual: String,
    },
    /// Local IO failed; not the sender's fault.
    #[error("the media could not be read: {0}")]
    Unreadable(String),
}

/// Limits that share one error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// In bytes.
    Size,
    /// In milliseconds.
    Duration,
    Pages,
    Count,
}

impl Limit {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Duration => "duration",
            Self::Pages => "pages",
            Self::Count => "count",
        }
    }

    const fn unit(self) -> Option<&'static str> {
        match self {
            Self::Size => Some("bytes"),
            Self::Duration => Some("ms"),
            Self::Pages | Self::Count => None,
        }
    }
}

impl Error {
    pub(crate) fn undecodable(reason: impl Into<String>) -> Self {
        Self::Corrupt {
            reason: reason.into(),
        }
    }

    pub(crate) fn truncated() -> Self {
        Self::undecodable("the file ends too early")
    }

    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "E1010",
            Self::TooLarge { .. } => "E1011",
            Self::Corrupt { .. } => "E1013",
            Self::Mismatch { .. } => "E1014",
            Self::TooWide { .. } => "E1015",
            Self::TooSmall { .. } => "E1016",
            Self::TooManyPixels { .. } => "E1017",
            Self::Checksum { .. } => "E1020",
            Self::Unreadable(_) => "E4000",
        }
    }

    pub fn details(&self) -> Map<String, Value> {
        let value = match self {
            Self::Unsupported { media_type, allowed } => {
                json!({"media_type": media_type, "allowed": allowed})
            }
            Self::TooLarge {
                limit,
                allowed,
                actual,
            } => {
                let mut value = json!({"limit": limit.as_str(), "allowed": allowed, "actual": actual});
                if let (Some(unit), Value::Object(map)) = (limit.unit(), &mut value) {
                    map.insert(String::from("unit"), Value::from(unit));
                }
                value
            }
            Self::Corrupt { reason } => json!({"reason": reason}),
            Self::Mismatch {
                declared,
                detected,
                magic_bytes,
            } => json!({
                "declared_type": declared, "detected_type": detected, "magic_bytes": magic_bytes,
            }),
            Self::TooWide {
                width,
                height,
                allowed,
            } => json!({
                "width": width, "height": height, "allowed": {"width": allowed.0, "height": allowed.1},
            }),
            Self::TooSmall {
                width,
                height,
                allowed,
            } => json!({
                "width": width, "height": height, "allowed": {"width": allowed, "height": allowed},
            }),
            Self::TooManyPixels { pixels, allowed } => json!({"pixels": pixels, "allowed": allowed}),
            Self::Checksum {
                algorithm,
                expected,
                actual,
            } => json!({"algorithm": algorithm, "expected": expected, "actual": actual}),
            Self::Unreadable(_) => json!({}),
        };
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}
