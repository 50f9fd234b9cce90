//! The arguments of a program, with places that each call fills: `-v{voice}`, `{input}`. Every argument of the
//! template becomes one argument of the program or none; values are never split and no shell reads them.

use std::ffi::OsString;

use crate::limits;

/// What can be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The file that holds the input. Without it, the input is on standard input.
    Input,
    /// The file that will hold the output. Without it, the output is what is printed.
    Output,
    /// The file that holds the configured script.
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
        "`{{{0}}}` in an argument names nothing that can be filled in; known are {known}, and a brace that is meant \
         as such is written twice",
        known = known()
    )]
    Unknown(String),
    #[error("the argument `{0}` has a brace without its partner; one that is meant as such is written twice")]
    Unbalanced(String),
    #[error("there are more than {} arguments", limits::COMMAND_ARGUMENTS_MAX)]
    TooMany,
    #[error("an argument holds a zero byte")]
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
    /// When a place is unknown or a brace has no partner.
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

    /// Whether a place is a whole argument somewhere.
    pub fn is_whole_argument(&self, slot: Slot) -> bool {
        self.0.iter().any(|argument| *argument == [Piece::Slot(slot)])
    }

    /// The arguments of one call. One that has a place without a value is left out.
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
