//! What a conversion may assume about where it takes place: whether local files mean anything, and which
//! ids of others are known.

use ir::media::{ForeignIds, StoredRef};
use ir::{Dialect, MediaId};

#[derive(Clone, Copy, Debug)]
pub struct ConversionContext<'a> {
    pub place: Locality,
    pub aliases: &'a ForeignIds,
}

/// Only where the caller and the files are on one machine may a document name a local file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    Local,
    Server,
}

impl ConversionContext<'_> {
    /// The spelling of a stored id in `dialect`: the one that dialect's issuer gave it, or ours by `mint`.
    pub(super) fn spell(
        &self,
        stored: &StoredRef,
        dialect: Dialect,
        mint: impl Fn(MediaId) -> String,
    ) -> Option<String> {
        let id = match stored {
            StoredRef::Foreign { dialect: from, text } if *from == dialect => return Some(text.clone()),
            StoredRef::Foreign { dialect: from, text } => self.aliases.id(*from, text)?,
            StoredRef::Id(id) => *id,
            StoredRef::Handle(held) => held.id(),
        };
        let known = self.aliases.text(dialect, id).map(String::from);
        Some(known.unwrap_or_else(|| mint(id)))
    }
}
