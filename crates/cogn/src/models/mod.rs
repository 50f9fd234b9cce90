//! Weights of embedded models on this machine: which are known, which are there, and how they come here.
//! Works in every build; running them is the business of the crate `local`.

mod catalogue;
mod download;
mod embedded;
mod limits;
mod pypi;
mod progress;
mod pull;
mod store;

pub(crate) use catalogue::{CATALOGUE, Entry, Form, Source, default_entry};
pub(crate) use embedded::{Missing, embedded, encoder};
pub(crate) use pull::{Wanted, pull};
pub(crate) use store::{Installed, Shelf};
