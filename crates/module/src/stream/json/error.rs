//! Why a text is not JSON, and at which byte.

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonError {
    pub kind: JsonErrorKind,
    /// Bytes from the beginning of the document.
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    #[error("the document ends too early")]
    UnexpectedEnd,
    #[error("something else is expected here")]
    UnexpectedByte,
    #[error("more text follows the document")]
    TrailingText,
    #[error("control characters must be escaped")]
    ControlCharacter,
    #[error("there is no such escape")]
    BadEscape,
    #[error("half a surrogate pair stands alone")]
    LoneSurrogate,
    #[error("the text is not UTF-8")]
    BadUtf8,
    #[error("this is not a number")]
    BadNumber,
    #[error("the number is out of range")]
    NumberRange,
    #[error("the document nests too deeply")]
    TooDeep,
    #[error("a key or number is too long")]
    TooLong,
}

/// A fault at a place in the piece at hand; the parser adds what came before.
pub(super) type PieceError = (usize, JsonErrorKind);
