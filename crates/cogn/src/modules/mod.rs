//! Module folders on disk: where they are looked for, and how one becomes a file map. The language
//! itself knows no disk; this is the thin layer that does.

mod folder;
mod replace;
mod search;

pub(crate) use folder::read_folder;
pub(crate) use replace::{Backup, Replacement, heal, interrupted, replace};
pub(crate) use search::Search;
