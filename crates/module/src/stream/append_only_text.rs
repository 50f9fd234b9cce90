//! Chunks as one growing JSON text, for readers that can take nothing back: what was said stays said. The
//! pieces, one after the other, are the data's own JSON, however the chunks were cut. An answer that is begun
//! anew is held back until it has caught up with what was said, and refused where it says something else.

use serde_json::{Map, Value};

use super::chunk::Chunk;
use super::field::{self, PathStep};

#[derive(Debug, Default)]
pub struct AppendOnlyText {
    /// Everything that was handed out.
    said: String,
    /// How far the answer at hand has come along it.
    reached: usize,
    pen: JsonWriter,
}

/// What was said is no beginning of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer was begun anew and differs from what was shown of it")]
pub struct Retracted;

impl AppendOnlyText {
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether anything was said yet.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Takes the next chunk and gives the text that it adds; often none.
    pub fn push(&mut self, chunk: &Chunk) -> Result<String, Retracted> {
        let mut text = String::new();
        match chunk {
            Chunk::Delta { field, delta, .. } => self.pen.append(&steps(field)?, delta, &mut text)?,
            Chunk::Snapshot { field, data, .. } => match (steps(field)?.as_slice(), data) {
                ([], Value::Object(data)) => {
                    self.reached = 0;
                    self.pen = JsonWriter::default();
                    for (key, value) in data {
                        self.pen.put(&[PathStep::Key(key.clone())], value, &mut text)?;
                    }
                }
                (steps, value) => self.pen.put(steps, value, &mut text)?,
            },
            Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
        self.say(&text)
    }

    /// The answer stands: gives the rest of its data's text.
    pub fn finish(&mut self, data: &Map<String, Value>) -> Result<String, Retracted> {
        let whole = serde_json::to_string(data).unwrap_or_default();
        if let Some(rest) = whole.strip_prefix(self.said.as_str()) {
            let rest = String::from(rest);
            self.said = whole;
            return Ok(rest);
        }
        // A model may write a key twice. The text then holds it twice, and readers take the last.
        let mut rest = String::new();
        self.pen.close(0, &mut rest);
        let rest = self.say(&rest)?;
        match serde_json::from_str::<Map<String, Value>>(&self.said) {
            Ok(read) if read == *data => Ok(rest),
            _ => Err(Retracted),
        }
    }

    /// The part of the answer's next words that nobody has heard.
    fn say(&mut self, text: &str) -> Result<String, Retracted> {
        let before = self.said.as_bytes().get(self.reached..).unwrap_or_default();
        let known = before.len().min(text.len());
        if before.get(..known) != text.as_bytes().get(..known) {
            return Err(Retracted);
        }
        self.reached += text.len();
        let fresh = text.get(known..).unwrap_or_default();
        self.said.push_str(fresh);
        Ok(String::from(fresh))
    }
}

fn steps(field: &str) -> Result<Vec<PathStep>, Retracted> {
    field::parse(field).ok_or(Retracted)
}

/// Writes values at places that follow one another in a document.
#[derive(Debug, Default)]
struct JsonWriter {
    /// The containers around the pen, from the data inwards: how each was entered, and what it holds.
    open: Vec<TextContainer>,
    /// The place of the string that may still grow, below the innermost container.
    text: Option<PathStep>,
}

#[derive(Debug)]
struct TextContainer {
    /// `None` for the data itself.
    entered: Option<PathStep>,
    list: bool,
    members: usize,
}

impl JsonWriter {
    /// Lets the string at a place grow.
    fn append(&mut self, steps: &[PathStep], text: &str, out: &mut String) -> Result<(), Retracted> {
        let Some((last, around)) = steps.split_last() else {
            return Err(Retracted);
        };
        let is_here = self.text.as_ref() == Some(last) && self.open.len() == around.len() + 1;
        if !is_here || self.shared(around) != around.len() {
            self.go(around, last, out)?;
            self.text = Some(last.clone());
            out.push('"');
        }
        let quoted = Value::from(text).to_string();
        let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        out.push_str(inside.unwrap_or_default());
        Ok(())
    }

    /// Writes a value at a place. Only a string may still grow behind it.
    fn put(&mut self, steps: &[PathStep], value: &Value, out: &mut String) -> Result<(), Retracted> {
        let Some((last, around)) = steps.split_last() else {
            return Err(Retracted);
        };
        match value {
            Value::String(text) => {
                self.close_text(out);
                self.append(steps, text, out)
            }
            value => {
                self.go(around, last, out)?;
                out.push_str(&value.to_string());
                Ok(())
            }
        }
    }

    /// Goes to a place: everything that it is not in is closed, everything around it opened.
    fn go(&mut self, around: &[PathStep], last: &PathStep, out: &mut String) -> Result<(), Retracted> {
        let shared = self.shared(around);
        if self.open.is_empty() {
            self.enter(None, around.first().unwrap_or(last), out);
        } else {
            self.close(shared + 1, out);
        }
        for (index, step) in around.iter().enumerate().skip(shared) {
            self.begin_member(step, out)?;
            self.enter(Some(step.clone()), around.get(index + 1).unwrap_or(last), out);
        }
        self.begin_member(last, out)
    }

    /// How many of these containers the pen is in.
    fn shared(&self, around: &[PathStep]) -> usize {
        let entered = self.open.iter().skip(1).map(|container| &container.entered);
        let same = entered
            .zip(around)
            .take_while(|(entered, step)| entered.as_ref() == Some(*step));
        same.count()
    }

    fn close_text(&mut self, out: &mut String) {
        if self.text.take().is_some() {
            out.push('"');
        }
    }

    /// Closes the string and all containers beyond the first `kept`.
    fn close(&mut self, kept: usize, out: &mut String) {
        self.close_text(out);
        for container in self.open.drain(kept.min(self.open.len())..).rev() {
            out.push(if container.list { ']' } else { '}' });
        }
    }

    /// Opens a container; what kind it is shows in the first step inside.
    fn enter(&mut self, entered: Option<PathStep>, inside: &PathStep, out: &mut String) {
        let list = matches!(inside, PathStep::Index(_));
        out.push(if list { '[' } else { '{' });
        self.open.push(TextContainer {
            entered,
            list,
            members: 0,
        });
    }

    fn begin_member(&mut self, step: &PathStep, out: &mut String) -> Result<(), Retracted> {
        let container = self.open.last_mut().ok_or(Retracted)?;
        if container.members > 0 {
            out.push(',');
        }
        match (step, container.list) {
            (PathStep::Index(index), true) if *index == container.members => {}
            (PathStep::Key(key), false) => {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
            }
            _ => return Err(Retracted),
        }
        container.members += 1;
        Ok(())
    }
}
