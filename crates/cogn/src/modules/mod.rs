//! Module folders on disk: where they are looked for, and how one becomes a file map. The language
//! itself knows no disk; this is the thin layer that does.

mod folder;
mod library;
mod neighbours;
mod replace;
mod search;
mod survey;

pub(crate) use folder::{read_essentials, read_folder};
pub(crate) use library::Library;
pub(crate) use neighbours::Neighbours;
pub(crate) use replace::{Backup, Replacement, heal, interrupted, replace};
pub(crate) use search::{Found, Search, is_module};
pub(crate) use survey::survey;
