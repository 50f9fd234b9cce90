//! The HTTP edge: modules as resources, runs as streams. It parses and negotiates, makes one call into
//! the engine, and frames what comes back; it renders no chunk and decides nothing about a run. This
//! crate must not know back-ends or storage.

mod framing;
pub mod limits;
mod negotiate;
mod reply;
mod request;
mod route;
mod server;
mod state;
mod streaming;

pub use route::router;
pub use server::serve;
pub use state::Gateway;
