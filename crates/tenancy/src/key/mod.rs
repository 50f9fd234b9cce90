//! API keys: shown once, kept as a hash, found by the part of them that is no secret.

mod port;
mod record;
mod secret;
#[cfg(test)]
mod tests;

pub use port::{KeyError, KeyStore};
pub use record::{Key, NewKey, KeyStatus};
pub use secret::{KeyId, Secret};
