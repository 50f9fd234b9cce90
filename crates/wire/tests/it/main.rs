//! The dialects from outside: documents in, documents out.

mod answers;
mod documents;
mod fold;
mod fuzz;
mod identity;
mod recorded;
