//! Vendors' own clients, unchanged, in front of the binary: OpenAI's and Anthropic's for Python and
//! JavaScript, Vercel's and LangChain's. Behind it are a real model server, the embedded model, and scripts
//! for what a small model cannot be trusted to do. What is expected stands in `tests/clients`, in the
//! language of each client.

mod guide;
mod node;
mod operations;
mod packages;
mod python;
mod setup;
