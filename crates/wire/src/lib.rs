//! Foreign dialects as sans-IO encoders and decoders. Each dialect has its folder and knows only itself
//! and the vocabulary; what one cannot say, it books in a ledger. A document that goes back to the
//! dialect it came from comes out as it went in.

pub mod anthropic;
mod call_id;
mod canonical;
pub mod chat;
mod constant_field;
pub mod document;
pub mod embeddings;
pub mod error_body;
mod unknown_fields;
pub mod field_type;
pub mod framing;
pub mod gemini;
mod gemini_embeddings;
pub mod response_summary;
mod pending_blocks;
pub mod holes;
pub mod lift;
pub mod limits;
mod control_tokens;
pub mod media;
pub mod messages;
pub mod ollama;
mod ollama_embeddings;
pub mod openai_chat;
pub mod openai_embeddings;
pub mod openai_images;
pub mod openai_responses;
pub mod openai_speech;
pub mod openai_transcriptions;
pub mod json_field_ranges;
mod media_losses;
mod tool_result_name;
mod stream;
pub mod subtitles;
mod timestamp;
mod turns;
mod losses;
pub mod embedding_vector;

pub use stream::{Decoder, Encoder};
