//! Vendors' own clients, unmodified, against the binary: OpenAI's and Anthropic's for Python and JavaScript,
//! Vercel's and LangChain's. The back-ends are a real model server, the embedded model, and scripts for
//! behaviour that a small model does not show reliably. The expectations are in `tests/clients`, in the
//! language of each client.

mod guide;
mod node;
mod operations;
mod packages;
mod python;
mod setup;
