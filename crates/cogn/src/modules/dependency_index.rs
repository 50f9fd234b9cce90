//! Dependencies of modules, by name. Each is read once; only its card is cached.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use module::check::ModuleSummary;

use super::{Search, read_essentials};

#[derive(Debug)]
pub(crate) struct DependencyIndex<'a> {
    search: &'a Search,
    cards: Mutex<HashMap<PathBuf, Option<ModuleSummary>>>,
}

impl<'a> DependencyIndex<'a> {
    pub(crate) fn new(search: &'a Search) -> Self {
        Self {
            search,
            cards: Mutex::default(),
        }
    }

    /// The card of the module that `name` refers to in the module in `folder`: from the search path, or from
    /// the parent folder.
    pub(crate) fn find(&self, folder: &Path, name: &str) -> Option<ModuleSummary> {
        let beside = || {
            let real = std::fs::canonicalize(folder).ok()?;
            let path = real.parent()?.join(name);
            super::is_module(&path).then_some(path)
        };
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        let path = plain
            .then(|| self.search.lookup(name).or_else(beside))
            .flatten()?;
        let lock = || self.cards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(card) = lock().get(&path) {
            return card.clone();
        }
        let card = read_essentials(&path)
            .ok()
            .and_then(|files| ModuleSummary::read(&files));
        lock().insert(path, card.clone());
        card
    }
}
