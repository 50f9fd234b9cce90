//! Rules of the house as tests: what may depend on what, what every file must have. A rule that some
//! files break has a list of them, and the list may only shrink.

mod files;
mod layers;
mod licences;
mod links;
mod snapshots;
mod git_files;
