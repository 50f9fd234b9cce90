//! Converts chunks to a single growing JSON text, for readers that cannot retract text. The concatenated
//! pieces are the JSON of the data, independent of chunk boundaries. After a restarted answer no text is
//! returned until the new answer has reached the length of the emitted text; a new answer that differs from
//! it is refused.

use serde_json::{Map, Value};

use super::chunk::Chunk;
use super::field::{self, PathStep};

#[derive(Debug, Default)]
pub struct AppendOnlyText {
    /// All text returned so far.
    emitted: String,
    /// Length of the emitted text that the current answer has reproduced.
    position: usize,
    writer: JsonWriter,
}

/// The emitted text is not a prefix of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the restarted answer differs from the text already sent")]
pub struct Retracted;

impl AppendOnlyText {
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no text was returned yet.
    pub fn is_empty(&self) -> bool {
        self.emitted.is_empty()
    }

    /// Applies the next chunk and returns the text that it adds; often empty.
    pub fn push(&mut self, chunk: &Chunk) -> Result<String, Retracted> {
        let mut text = String::new();
        match chunk {
            Chunk::Delta { field, delta, .. } => self.writer.append(&steps(field)?, delta, &mut text)?,
            Chunk::Snapshot { field, data, .. } => match (steps(field)?.as_slice(), data) {
                ([], Value::Object(data)) => {
                    self.position = 0;
                    self.writer = JsonWriter::default();
                    for (key, value) in data {
                        self.writer.put(&[PathStep::Key(key.clone())], value, &mut text)?;
                    }
                }
                (steps, value) => self.writer.put(steps, value, &mut text)?,
            },
            Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
        self.emit(&text)
    }

    /// Completes the answer and returns the rest of its JSON text.
    pub fn finish(&mut self, data: &Map<String, Value>) -> Result<String, Retracted> {
        let whole = serde_json::to_string(data).unwrap_or_default();
        if let Some(rest) = whole.strip_prefix(self.emitted.as_str()) {
            let rest = String::from(rest);
            self.emitted = whole;
            return Ok(rest);
        }
        // A model may write a key twice. The text then contains both; readers use the last.
        let mut rest = String::new();
        self.writer.close(0, &mut rest);
        let rest = self.emit(&rest)?;
        match serde_json::from_str::<Map<String, Value>>(&self.emitted) {
            Ok(read) if read == *data => Ok(rest),
            _ => Err(Retracted),
        }
    }

    /// The part of `text` that was not emitted before.
    fn emit(&mut self, text: &str) -> Result<String, Retracted> {
        let before = self.emitted.as_bytes().get(self.position..).unwrap_or_default();
        let known = before.len().min(text.len());
        if before.get(..known) != text.as_bytes().get(..known) {
            return Err(Retracted);
        }
        self.position += text.len();
        let fresh = text.get(known..).unwrap_or_default();
        self.emitted.push_str(fresh);
        Ok(String::from(fresh))
    }
}

fn steps(field: &str) -> Result<Vec<PathStep>, Retracted> {
    field::parse(field).ok_or(Retracted)
}

/// Writes values at field paths in document order.
#[derive(Debug, Default)]
struct JsonWriter {
    /// The open containers, from the data inwards, each with its step and member count.
    open: Vec<TextContainer>,
    /// The step of the string that can still grow, in the innermost container.
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
    /// Appends text to the string at `steps`.
    fn append(&mut self, steps: &[PathStep], text: &str, out: &mut String) -> Result<(), Retracted> {
        let Some((last, around)) = steps.split_last() else {
            return Err(Retracted);
        };
        let is_here = self.text.as_ref() == Some(last) && self.open.len() == around.len() + 1;
        if !is_here || self.shared(around) != around.len() {
            self.move_to(around, last, out)?;
            self.text = Some(last.clone());
            out.push('"');
        }
        let quoted = Value::from(text).to_string();
        let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        out.push_str(inside.unwrap_or_default());
        Ok(())
    }

    /// Writes a value at `steps`. Only a string can still grow afterwards.
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
                self.move_to(around, last, out)?;
                out.push_str(&value.to_string());
                Ok(())
            }
        }
    }

    /// Moves to a path: closes the containers that do not contain it and opens those that do.
    fn move_to(&mut self, around: &[PathStep], last: &PathStep, out: &mut String) -> Result<(), Retracted> {
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

    /// How many of these containers are already open.
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

    /// Opens a container; the first step inside determines whether it is a list.
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
