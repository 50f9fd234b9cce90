//! Storage adapters for ports that other crates own: one folder per database. All adapters pass the same test
//! suites. This crate must not know providers or the HTTP edge.

mod durability;
mod folder;
pub mod limits;
pub mod memory;
pub mod sqlite;
mod stores;

pub use durability::Durability;
pub use stores::{StoreError, StoreLock, StoreSettings, StoreUrl, Stores, open};
