//! Who calls, what they may do and how much of it. Keys, scopes, allow-lists, rates and fair turns are
//! decided here, purely: time is a number, randomness is an argument, storage is a port. This crate must
//! not know HTTP, SQL or a run.

mod caller;
pub mod key;
pub mod limit;
pub mod limits;
mod scope;
mod tenant;
mod token;

pub use caller::{AllowList, Caller, Denial, Credential};
pub use key::{Key, KeyError, KeyId, KeyStore, NewKey, Secret, KeyStatus};
pub use scope::{Scope, Scopes};
pub use tenant::Tenant;
pub use token::{Claims, TokenError, TokenRules, JwksSource};
