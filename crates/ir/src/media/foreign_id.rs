//! Maps media ids that other systems issued, by dialect, to [`MediaId`]. A foreign id is encoded for its
//! dialect unchanged.

use std::collections::BTreeMap;

use crate::dialect::Dialect;
use crate::media::id::MediaId;

#[derive(Clone, Debug, Default)]
pub struct ForeignIds {
    ids: BTreeMap<(Dialect, String), MediaId>,
    texts: BTreeMap<(Dialect, MediaId), String>,
}

impl ForeignIds {
    /// Maps `text` to `id`. The first text of an id in a dialect is the one that is encoded.
    pub fn insert(&mut self, dialect: Dialect, text: &str, id: MediaId) {
        self.ids.insert((dialect, String::from(text)), id);
        self.texts
            .entry((dialect, id))
            .or_insert_with(|| String::from(text));
    }

    pub fn id(&self, dialect: Dialect, text: &str) -> Option<MediaId> {
        self.ids.get(&(dialect, String::from(text))).copied()
    }

    pub fn text(&self, dialect: Dialect, id: MediaId) -> Option<&str> {
        self.texts.get(&(dialect, id)).map(String::as_str)
    }
}
