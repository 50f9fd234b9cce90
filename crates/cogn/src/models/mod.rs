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

pub(crate) use catalogue::{CATALOGUE, CatalogueModel, ModelKind, WeightsSource, default_entry};
pub(crate) use embedded::{ModelUnavailable, embedded, encoder};
pub(crate) use pull::{PullSource, pull};
pub(crate) use store::{InstalledModel, ModelStore};
