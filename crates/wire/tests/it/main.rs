//! The dialects from outside: documents in, documents out.

#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests, helpers included")]

mod answers;
mod documents;
mod fold;
mod fuzz;
mod identity;
mod recorded;
