//! The context of a conversion: whether local files are accessible, and which foreign ids are known.

use ir::media::{ForeignIds, StoredRef};
use ir::{Dialect, MediaId};

#[derive(Clone, Copy, Debug)]
pub struct ConversionContext<'a> {
    pub place: Locality,
    pub aliases: &'a ForeignIds,
}

/// A document may name a local file only if the caller and the files are on the same machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    Local,
    Server,
}

impl ConversionContext<'_> {
    /// The form of a stored id in `dialect`: the one assigned by that dialect's issuer, or ours from `mint`.
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
        };
        let known = self.aliases.text(dialect, id).map(String::from);
        Some(known.unwrap_or_else(|| mint(id)))
    }
}
