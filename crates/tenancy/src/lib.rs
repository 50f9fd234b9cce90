//! Callers, their permissions and their limits: keys, tokens, scopes, allow-lists, rates and fair queueing.
//! Pure: time is a number, randomness is an argument, storage is a port. This crate must not depend on
//! HTTP, SQL or runs.

mod caller;
pub mod key;
pub mod limit;
pub mod limits;
mod scope;
mod tenant;
mod token;

pub use caller::{AllowList, Caller, Credential, Denial};
pub use key::{Key, KeyError, KeyId, KeyStatus, KeyStore, NewKey, Secret};
pub use scope::{Scope, Scopes};
pub use tenant::Tenant;
pub use token::{Claims, JwksSource, TokenError, TokenRules};
