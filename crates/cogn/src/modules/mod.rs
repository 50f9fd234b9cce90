//! Module folders on disk: the search path, reading a folder into a file map, and replacing a folder. The
//! crate `module` does not access the file system.

mod dependency_index;
mod folder;
mod library;
mod parallel_check;
mod replace_dir;
mod search;

pub(crate) use dependency_index::DependencyIndex;
pub(crate) use folder::{read_essentials, read_folder};
pub(crate) use library::Library;
pub(crate) use parallel_check::check_all;
pub(crate) use replace_dir::{Backup, Replacement, interrupted, recover, replace};
pub(crate) use search::{Found, Search, is_module};
