//! Why a piece of media cannot stand in a form: it is not that form, the form has no words for it, or its
//! bytes are in the wrong place. The last is no failure but a request: whoever has a store fulfils it and
//! tries again.

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

/// What a store has to do before the conversion can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredAction {
    /// Keep the inline bytes and give them an id.
    Put,
    /// Hand out the bytes of stored media.
    Load,
    /// Fetch the address and keep what comes.
    Fetch,
    /// Read the local file and keep its bytes.
    Read,
    /// Say whose id this is; the spelling is another's.
    Alias,
}

impl RequiredAction {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Put => "its bytes must be stored first",
            Self::Load => "its bytes must be taken out of the store first",
            Self::Fetch => "it must be fetched and stored first",
            Self::Read => "the local file must be read and stored first",
            Self::Alias => "its id is spelled as another issuer spells it, and no alias is known",
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

    /// The same, seen from the document that holds this one at `prefix`.
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
            ConversionError::NeedsStore { .. } | ConversionError::Malformed { .. } => ErrorKind::InvalidRequest,
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
