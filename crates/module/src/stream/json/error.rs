//! JSON syntax errors with their byte offset.

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonError {
    pub kind: JsonErrorKind,
    /// Bytes from the beginning of the document.
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    #[error("the document ends prematurely")]
    UnexpectedEnd,
    #[error("unexpected character")]
    UnexpectedByte,
    #[error("unexpected text after the document")]
    TrailingText,
    #[error("control characters must be escaped")]
    ControlCharacter,
    #[error("unknown escape sequence")]
    BadEscape,
    #[error("unpaired surrogate")]
    LoneSurrogate,
    #[error("the text is not UTF-8")]
    BadUtf8,
    #[error("invalid number")]
    BadNumber,
    #[error("the number is out of range")]
    NumberRange,
    #[error("the document is nested too deeply")]
    TooDeep,
    #[error("a key or number is too long")]
    TooLong,
}

/// An error at an offset in the current piece; the parser adds the length of the earlier pieces.
pub(super) type PieceError = (usize, JsonErrorKind);
