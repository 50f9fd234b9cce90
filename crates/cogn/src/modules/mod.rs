//! Module folders on disk: where they are looked for, and how one becomes a file map. The language
//! itself knows no disk; this is the thin layer that does.

mod folder;
mod library;
mod dependency_index;
mod replace_dir;
mod search;
mod parallel_check;

pub(crate) use folder::{read_essentials, read_folder};
pub(crate) use library::Library;
pub(crate) use dependency_index::DependencyIndex;
pub(crate) use replace_dir::{Backup, Replacement, recover, interrupted, replace};
pub(crate) use search::{Found, Search, is_module};
pub(crate) use parallel_check::check_all;
