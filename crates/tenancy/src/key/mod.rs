//! API keys: shown once, stored as a hash, found by their public id.

mod port;
mod record;
mod secret;
#[cfg(test)]
mod tests;

pub use port::{KeyError, KeyStore};
pub use record::{Key, KeyStatus, NewKey};
pub use secret::{KeyId, Secret};
