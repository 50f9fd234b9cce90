//! Tool call ids for dialects in which a call need not have one. Every call gets an id, so that other
//! dialects can match a result to its call. A generated id is noted and is not encoded back into the source
//! dialect.

use ir::{Dialect, Ext, Map};
use serde_json::Value;

const NOTE: &str = "$id";

/// The calls of one document, in order.
#[derive(Debug)]
pub(crate) struct CallIds {
    own: Dialect,
    /// Distinguishes the generated ids of one response from those of another.
    salt: String,
    seen: usize,
    /// Whether results may follow. A response has none, so a stream does not store its calls.
    answered: bool,
    /// Name and id of the calls that have no result yet.
    open: Vec<(String, String)>,
}

impl CallIds {
    pub(crate) fn new(own: Dialect) -> Self {
        Self {
            own,
            salt: String::from("unnamed_"),
            seen: 0,
            answered: true,
            open: Vec::new(),
        }
    }

    /// Call ids of one response; `salt` distinguishes it from other responses.
    pub(crate) fn of_answer(own: Dialect, salt: Option<&str>) -> Self {
        Self {
            answered: false,
            salt: salt.map_or_else(|| String::from("unnamed_"), |salt| format!("{salt}_")),
            ..Self::new(own)
        }
    }

    /// The id of the next call.
    pub(crate) fn call(&mut self, name: &str, given: Option<String>, ext: &mut Ext) -> String {
        let id = self
            .given(given, ext)
            .unwrap_or_else(|| format!("call_{}{}", self.salt, self.seen));
        self.seen += 1;
        if self.answered {
            self.open.push((String::from(name), id.clone()));
        }
        id
    }

    /// The id of the call that a result belongs to: the id in the result, or the oldest call without a result
    /// (of the same name, if the result has one).
    pub(crate) fn result(&mut self, name: Option<&str>, given: Option<String>, ext: &mut Ext) -> String {
        if let Some(id) = self.given(given, ext) {
            self.open.retain(|(_, known)| *known != id);
            return id;
        }
        let fits = |known: &str| name.is_none_or(|name| name == known);
        match self.open.iter().position(|(known, _)| fits(known)) {
            Some(at) => self.open.remove(at).1,
            None => String::from(name.unwrap_or_default()),
        }
    }

    fn given(&self, given: Option<String>, ext: &mut Ext) -> Option<String> {
        let word = match given {
            Some(id) if !id.is_empty() => return Some(id),
            Some(_) => "empty",
            None => "absent",
        };
        ext.set(self.own, NOTE, word);
        None
    }
}

/// Writes an id unless it was generated.
pub(crate) fn put(map: &mut Map, key: &str, own: Dialect, id: &str, ext: &Ext) {
    let id = match ext.note(own, NOTE) {
        Some("empty") => "",
        None if !id.is_empty() => id,
        _ => return,
    };
    map.insert(String::from(key), Value::from(id));
}
