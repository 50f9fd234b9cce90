//! Argument templates of a program with placeholders that each call fills: `-v{voice}`, `{input}`. Every
//! argument of the template becomes one argument of the program or none; values are not split, and no shell
//! is involved.

use std::ffi::OsString;

use crate::limits;

/// A placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The file with the input. If unused, the input is on standard input.
    Input,
    /// The output file. If unused, the output is standard output.
    Output,
    /// The file with the configured script.
    Script,
    Voice,
    Language,
    Format,
    Model,
    Speed,
}

impl Slot {
    pub const ALL: [Self; 8] = [
        Self::Input,
        Self::Output,
        Self::Script,
        Self::Voice,
        Self::Language,
        Self::Format,
        Self::Model,
        Self::Speed,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Script => "script",
            Self::Voice => "voice",
            Self::Language => "language",
            Self::Format => "format",
            Self::Model => "model",
            Self::Speed => "speed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "`{{{0}}}` in an argument is not a known placeholder; known are {known}; a literal \
         brace is written twice",
        known = known()
    )]
    Unknown(String),
    #[error("the argument `{0}` has an unbalanced brace; a literal brace is written twice")]
    Unbalanced(String),
    #[error("there are more than {} arguments", limits::COMMAND_ARGUMENTS_MAX)]
    TooMany,
    #[error("an argument contains a zero byte")]
    ZeroByte,
}

fn known() -> String {
    let names = Slot::ALL.iter().map(|slot| format!("`{{{}}}`", slot.as_str()));
    names.collect::<Vec<_>>().join(", ")
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Slot(Slot),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Vec<Piece>>);

impl Template {
    /// # Errors
    /// When a placeholder is unknown or a brace is unbalanced.
    pub fn parse(arguments: &[impl AsRef<str>]) -> Result<Self, TemplateError> {
        if arguments.len() > limits::COMMAND_ARGUMENTS_MAX {
            return Err(TemplateError::TooMany);
        }
        let parsed = arguments.iter().map(|argument| parse(argument.as_ref()));
        Ok(Self(parsed.collect::<Result<_, _>>()?))
    }

    pub fn uses(&self, slot: Slot) -> bool {
        self.0.iter().flatten().any(|piece| *piece == Piece::Slot(slot))
    }

    /// Whether a placeholder is a whole argument.
    pub fn is_whole_argument(&self, slot: Slot) -> bool {
        self.0.iter().any(|argument| *argument == [Piece::Slot(slot)])
    }

    /// The arguments of one call. An argument with a placeholder without a value is omitted.
    pub(super) fn fill(&self, value: impl Fn(Slot) -> Option<OsString>) -> Vec<OsString> {
        let fill = |argument: &Vec<Piece>| {
            let mut filled = OsString::new();
            for piece in argument {
                match piece {
                    Piece::Literal(words) => filled.push(words),
                    Piece::Slot(slot) => filled.push(value(*slot)?),
                }
            }
            Some(filled)
        };
        self.0.iter().filter_map(fill).collect()
    }
}

fn parse(argument: &str) -> Result<Vec<Piece>, TemplateError> {
    let unbalanced = || TemplateError::Unbalanced(String::from(argument));
    let mut pieces = Vec::new();
    let mut words = String::new();
    let mut letters = argument.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\0' => return Err(TemplateError::ZeroByte),
            '{' | '}' if letters.next_if_eq(&letter).is_some() => words.push(letter),
            '}' => return Err(unbalanced()),
            '{' => {
                let mut name = String::new();
                loop {
                    match letters.next() {
                        Some('}') => break,
                        Some(letter) => name.push(letter),
                        None => return Err(unbalanced()),
                    }
                }
                let slot = Slot::ALL.into_iter().find(|slot| slot.as_str() == name);
                let slot = slot.ok_or(TemplateError::Unknown(name))?;
                if !words.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut words)));
                }
                pieces.push(Piece::Slot(slot));
            }
            letter => words.push(letter),
        }
    }
    if !words.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Literal(words));
    }
    Ok(pieces)
}
