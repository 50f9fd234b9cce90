//! From a prompt template and an input to the text a model reads. One pass from left to right: what a
//! user wrote is put in place and never looked at again, so no input can call up another placeholder.
//!
//! | placeholder | becomes |
//! |---|---|
//! | `$ARGUMENTS` | the arguments as given |
//! | `$ARGUMENTS[N]`, `$N` | the N-th word of the arguments, from 0 |
//! | `$INPUT` | the input as JSON |
//! | `$SCHEMA` | the schema of `data` as JSON |
//! | `${field}` | that field of the input; a string as it is, anything else as JSON |
//! | `$MEDIA_INPUTS` | the place of the media parts |
//!
//! Anything else that begins with a dollar sign is text.

mod placeholder;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use placeholder::{Placeholder, Token, tokens};

use crate::module::Module;
use crate::schema::Section;

/// A part of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// Where the media of the input belong. Never reaches a model as text.
    Media,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub pieces: Vec<Piece>,
    /// Whether the template showed the input in any form; if not, the caller has to.
    pub shows_input: bool,
}

/// Renders a module's prompt for an input.
pub fn render(module: &Module, input: &Map<String, Value>) -> Prompt {
    let arguments = arguments(input);
    let mut prompt = Prompt {
        pieces: Vec::new(),
        shows_input: false,
    };
    let mut text = String::new();
    for token in tokens(&module.prompt) {
        let placeholder = match token {
            Token::Text(literal) => {
                text.push_str(literal);
                continue;
            }
            Token::Placeholder(placeholder) => placeholder,
        };
        prompt.shows_input |= placeholder.shows_input();
        match placeholder {
            Placeholder::Arguments => text.push_str(arguments),
            Placeholder::Argument(index) => {
                text.push_str(arguments.split_whitespace().nth(index).unwrap_or_default());
            }
            Placeholder::Input => text.push_str(&pretty(&Value::Object(input.clone()))),
            Placeholder::Schema => {
                text.push_str(
                    &module
                        .contract
                        .schema(Section::Data)
                        .map(pretty)
                        .unwrap_or_default(),
                );
            }
            Placeholder::Field(name) => match field(input, name) {
                Some(Value::String(value)) => text.push_str(value),
                Some(value) => text.push_str(&value.to_string()),
                None => {}
            },
            Placeholder::Media => {
                prompt.push_text(&mut text);
                prompt.pieces.push(Piece::Media);
            }
        }
    }
    prompt.push_text(&mut text);
    prompt
}

impl Prompt {
    fn push_text(&mut self, text: &mut String) {
        if !text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(text)));
        }
    }
}

/// The free-text arguments of an input, under the names that existing callers use.
fn arguments(input: &Map<String, Value>) -> &str {
    ["$ARGUMENTS", "query", "code"]
        .iter()
        .find_map(|key| input.get(*key).and_then(Value::as_str))
        .unwrap_or_default()
}

/// `a.b` is a field within a field, unless there is one of exactly that name.
fn field<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = input.get(name) {
        return Some(value);
    }
    let (head, rest) = name.split_once('.')?;
    let mut value = input.get(head)?;
    for part in rest.split('.') {
        value = value.get(part)?;
    }
    Some(value)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
