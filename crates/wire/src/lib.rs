//! Vendor dialects as sans-IO encoders and decoders. Each dialect has its own module and depends only on the
//! IR; what a dialect does not support is recorded in a ledger. A document that is decoded and encoded in the
//! same dialect is unchanged.

pub mod anthropic;
pub mod base64_extractor;
mod call_id;
mod canonical;
pub mod chat;
mod constant_field;
mod control_tokens;
pub mod document;
pub mod embedding_vector;
pub mod embeddings;
pub mod error_body;
pub mod field_type;
pub mod framing;
pub mod gemini;
mod gemini_embeddings;
pub mod limits;
mod losses;
pub mod media;
mod media_losses;
pub mod messages;
pub mod ollama;
mod ollama_embeddings;
pub mod openai_chat;
pub mod openai_embeddings;
pub mod openai_images;
pub mod openai_responses;
pub mod openai_speech;
pub mod openai_transcriptions;
mod optional_field;
mod pending_blocks;
pub mod response_summary;
mod steps;
mod stream;
pub mod subtitles;
mod timestamp;
mod tool_result_name;
mod turns;
mod unknown_fields;

pub use stream::{Decoder, Encoder};
