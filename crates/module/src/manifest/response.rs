//! How a module answers: in one response, as a stream, or as the caller selects.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseMode {
    #[default]
    Sync,
    Streaming,
    Both,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChunkType {
    #[default]
    Delta,
    Snapshot,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Response {
    pub mode: ResponseMode,
    pub chunk_type: ChunkType,
    /// UTF-8 bytes of one field that may be buffered before they are sent; 0 sends at once.
    pub buffer_size: u64,
    pub heartbeat_interval_ms: u64,
    pub max_duration_ms: u64,
}

impl Default for Response {
    fn default() -> Self {
        Self {
            mode: ResponseMode::Sync,
            chunk_type: ChunkType::Delta,
            buffer_size: 1024,
            heartbeat_interval_ms: 15_000,
            max_duration_ms: 300_000,
        }
    }
}
