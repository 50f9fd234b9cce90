//! Renders a prompt template and an input to the text for a model. One pass from left to right: substituted
//! input is not scanned again, so an input cannot trigger another placeholder.
//!
//! | placeholder | becomes |
//! |---|---|
//! | `$ARGUMENTS` | the arguments as given |
//! | `$ARGUMENTS[N]`, `$N` | the N-th word of the arguments, from 0 |
//! | `$INPUT` | the input as JSON |
//! | `$SCHEMA` | the schema of `data` as JSON, with the definitions that it refers to |
//! | `${field}` | that field of the input; a string as it is, anything else as JSON |
//! | `$MEDIA_INPUTS` | the place of the media parts |
//! | `@call:name(...)` | the envelope of the module that was called |
//! | `{{name.meta.risk}}` | a part of the envelope of a module that was called or required |
//!
//! Anything else that begins with a dollar sign is text.

mod placeholder;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::{Map, Value};

pub use placeholder::{Placeholder, Token, tokens};

/// Fields that `$ARGUMENTS` reads if the input has no text under that name.
pub(crate) const ARGUMENT_NAMES: [&str; 2] = ["query", "code"];

use crate::compose::{Results, Segment, segments};
use crate::input::FREE_TEXT_KEY;
use crate::module::Module;

/// A part of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptPiece {
    Text(String),
    /// The position of the input's media. Never sent as text.
    Media,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub pieces: Vec<PromptPiece>,
    /// Whether the template contains the input in any form; if not, the caller must add it.
    pub shows_input: bool,
}

/// Renders a module's prompt for an input.
pub fn render(module: &Module, input: &Map<String, Value>) -> Prompt {
    render_with(module, input, &Results::default())
}

/// As [`render`], with the results of other modules inserted at `@call` and `{{name.data}}`, and appended to
/// the prompt if it has no placeholder for them.
pub fn render_with(module: &Module, input: &Map<String, Value>, results: &Results) -> Prompt {
    let mut prompt = Prompt {
        pieces: Vec::new(),
        shows_input: false,
    };
    let mut text = String::new();
    let mut made: Vec<&str> = Vec::new();
    for segment in segments(&module.prompt) {
        match segment {
            Segment::Text(template) => prompt.push_template(template, module, input, &mut text),
            Segment::Result { written, path } => {
                text.push_str(results.injected(path).as_deref().unwrap_or(written));
            }
            Segment::Call(call) => {
                let step = match made.iter().filter(|name| **name == call.name).count() {
                    0 => String::from(call.name),
                    count => format!("{}#{}", call.name, count + 1),
                };
                made.push(call.name);
                let written = module.prompt.get(call.range).unwrap_or_default();
                text.push_str(results.of_call(&step).as_deref().unwrap_or(written));
            }
        }
    }
    text.push_str(&results.unreferenced(&module.prompt));
    prompt.push_text(&mut text);
    prompt
}

/// Fills the placeholders of a text that is not a prompt. Media and schemas are not supported.
pub(crate) fn fill(template: &str, input: &Map<String, Value>) -> String {
    let mut text = String::new();
    for token in tokens(template) {
        match token {
            Token::Text(literal) => text.push_str(literal),
            Token::Placeholder(placeholder) => text.push_str(&value_of(&placeholder, input)),
        }
    }
    text
}

/// The value of a placeholder of the input.
fn value_of(placeholder: &Placeholder<'_>, input: &Map<String, Value>) -> String {
    match placeholder {
        Placeholder::Arguments => String::from(arguments(input)),
        Placeholder::Argument(index) => {
            let word = arguments(input).split_whitespace().nth(*index);
            String::from(word.unwrap_or_default())
        }
        Placeholder::Input => pretty(input),
        Placeholder::Field(name) => match field(input, name) {
            Some(Value::String(value)) => value.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        },
        Placeholder::Schema | Placeholder::Media => String::new(),
    }
}

impl Prompt {
    fn push_template(
        &mut self,
        template: &str,
        module: &Module,
        input: &Map<String, Value>,
        text: &mut String,
    ) {
        for token in tokens(template) {
            let placeholder = match token {
                Token::Text(literal) => {
                    text.push_str(literal);
                    continue;
                }
                Token::Placeholder(placeholder) => placeholder,
            };
            self.shows_input |= placeholder.shows_input();
            match placeholder {
                Placeholder::Media => {
                    self.push_text(text);
                    self.pieces.push(PromptPiece::Media);
                }
                Placeholder::Schema => {
                    text.push_str(&module.schema_text());
                }
                placeholder => text.push_str(&value_of(&placeholder, input)),
            }
        }
    }

    fn push_text(&mut self, text: &mut String) {
        if !text.is_empty() {
            self.pieces.push(PromptPiece::Text(std::mem::take(text)));
        }
    }
}

/// The free-text arguments of an input, under the names that existing callers use.
fn arguments(input: &Map<String, Value>) -> &str {
    let text = argument_key(input).and_then(|key| input.get(key)?.as_str());
    text.unwrap_or_default()
}

/// The key of the text that `$ARGUMENTS` stands for.
pub(crate) fn argument_key(input: &Map<String, Value>) -> Option<&'static str> {
    let mut keys = [FREE_TEXT_KEY].into_iter().chain(ARGUMENT_NAMES);
    keys.find(|key| input.get(*key).is_some_and(Value::is_string))
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

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
