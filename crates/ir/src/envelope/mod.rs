//! The canonical envelopes: one request form and one response form for all six operations, with the
//! field names of the canonical documents.

mod payload;
mod request;
mod requirements;
mod response;
mod routing;
#[cfg(test)]
mod tests;

pub use payload::{
    Embedding, EmbeddingVector, EmbeddingsRequest, EmbeddingsResponse, ImageRequest, ImageResponse, Payload,
    RealtimeRequest, ResponsePayload, SpeechRequest, SpeechResponse, TranscriptionRequest,
    TranscriptionResponse,
};
pub use request::{Request, RequestMeta};
pub use requirements::Requirements;
pub use response::{BackendInfo, Outcome, Response};
pub use routing::{PolicySpec, RoutingHints};

/// The supported versions of the envelope.
pub const VERSIONS: &[u32] = &[1];
