//! Ids of calls in dialects where a call need not have one. Every call gets an id, so that other dialects
//! can say which result belongs to which; one that was invented is noted, and is not written back.

use ir::{Dialect, Ext, Map};
use serde_json::Value;

const NOTE: &str = "$id";

/// The calls of one document, in order.
#[derive(Debug)]
pub(crate) struct CallIds {
    own: Dialect,
    /// What tells the invented ids of one answer from those of another.
    salt: String,
    seen: usize,
    /// Results may follow. None do in an answer, and a stream must not keep what it will not need.
    answered: bool,
    /// Name and id of the calls that wait for their results.
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

    /// Of an answer that something tells from all others.
    pub(crate) fn of_answer(own: Dialect, salt: Option<&str>) -> Self {
        Self {
            answered: false,
            salt: salt.map_or_else(|| String::from("unnamed_"), |salt| format!("{salt}_")),
            ..Self::new(own)
        }
    }

    /// The id of the next call.
    pub(crate) fn call(&mut self, name: &str, said: Option<String>, ext: &mut Ext) -> String {
        let id = self
            .said(said, ext)
            .unwrap_or_else(|| format!("call_{}{}", self.salt, self.seen));
        self.seen += 1;
        if self.answered {
            self.open.push((String::from(name), id.clone()));
        }
        id
    }

    /// The id of the call that a result belongs to: the one it says, or the oldest that waits, of this
    /// name if the result says one.
    pub(crate) fn result(&mut self, name: Option<&str>, said: Option<String>, ext: &mut Ext) -> String {
        if let Some(id) = self.said(said, ext) {
            self.open.retain(|(_, known)| *known != id);
            return id;
        }
        let fits = |known: &str| name.is_none_or(|name| name == known);
        match self.open.iter().position(|(known, _)| fits(known)) {
            Some(at) => self.open.remove(at).1,
            None => String::from(name.unwrap_or_default()),
        }
    }

    fn said(&self, said: Option<String>, ext: &mut Ext) -> Option<String> {
        let word = match said {
            Some(id) if !id.is_empty() => return Some(id),
            Some(_) => "empty",
            None => "absent",
        };
        ext.set(self.own, NOTE, word);
        None
    }
}

/// Writes an id that was not invented.
pub(crate) fn put(map: &mut Map, key: &str, own: Dialect, id: &str, ext: &Ext) {
    let id = match ext.note(own, NOTE) {
        Some("empty") => "",
        None if !id.is_empty() => id,
        _ => return,
    };
    map.insert(String::from(key), Value::from(id));
}
