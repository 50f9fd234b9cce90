//! Repository rules as tests: allowed dependencies, and what every file must have. A rule with exceptions
//! lists them, and the list may only shrink.

mod architecture;
mod codes;
mod files;
mod layers;
mod licences;
mod linear_time;
mod links;
mod messages;
mod snapshots;
mod type_names;
mod words;
