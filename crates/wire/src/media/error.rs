//! Why media cannot be converted to a form: it is malformed, the form does not support it, or its bytes are
//! not available in the required place. In the last case the caller can perform the required action with its
//! media store and retry.

use ir::{Dialect, Error, ErrorKind, Phase};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    #[error("{target} cannot carry this media{}: {}", at(pointer), need.as_str())]
    NeedsStore {
        pointer: String,
        target: Dialect,
        need: RequiredAction,
    },
    #[error("{reason}{}", at(pointer))]
    Unsupported { pointer: String, reason: String },
    #[error("{reason}{}", at(pointer))]
    Malformed { pointer: String, reason: String },
}

/// What the caller has to do before the conversion can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredAction {
    /// Store the inline bytes under an id.
    Put,
    /// Load the bytes of stored media.
    Load,
    /// Fetch the URL and store the response.
    Fetch,
    /// Read the local file and store its bytes.
    Read,
    /// Add an alias for the id, which is in another issuer's format.
    Alias,
}

impl RequiredAction {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Put => "its bytes must be stored first",
            Self::Load => "its bytes must be loaded from the store first",
            Self::Fetch => "it must be fetched and stored first",
            Self::Read => "the local file must be read and stored first",
            Self::Alias => "its id is in another issuer's format, and no alias is known",
        }
    }
}

impl ConversionError {
    pub(crate) fn needs(target: Dialect, pointer: &str, need: RequiredAction) -> Self {
        Self::NeedsStore {
            pointer: String::from(pointer),
            target,
            need,
        }
    }

    pub(crate) fn unsupported(pointer: &str, reason: impl Into<String>) -> Self {
        Self::Unsupported {
            pointer: String::from(pointer),
            reason: reason.into(),
        }
    }

    pub(crate) fn malformed(pointer: &str, reason: impl Into<String>) -> Self {
        Self::Malformed {
            pointer: String::from(pointer),
            reason: reason.into(),
        }
    }

    /// The same error with its pointer relative to the document that contains this one at `prefix`.
    #[must_use]
    pub(crate) fn under(mut self, prefix: &str) -> Self {
        let (Self::NeedsStore { pointer, .. }
        | Self::Unsupported { pointer, .. }
        | Self::Malformed { pointer, .. }) = &mut self;
        pointer.insert_str(0, prefix);
        self
    }

    pub fn pointer(&self) -> &str {
        let (Self::NeedsStore { pointer, .. }
        | Self::Unsupported { pointer, .. }
        | Self::Malformed { pointer, .. }) = self;
        pointer
    }
}

impl From<ConversionError> for Error {
    fn from(refusal: ConversionError) -> Self {
        let kind = match refusal {
            ConversionError::Unsupported { .. } => ErrorKind::Unsupported,
            ConversionError::NeedsStore { .. } | ConversionError::Malformed { .. } => {
                ErrorKind::InvalidRequest
            }
        };
        Self::new(kind, Phase::BeforeSend, refusal.to_string())
    }
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() {
        String::new()
    } else {
        format!(" at {pointer}")
    }
}
