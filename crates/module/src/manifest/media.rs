//! The media that a module accepts and returns, and their limits.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    Text,
    Image,
    Audio,
    Video,
    Document,
}

/// Text is always supported, whether listed or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Modalities {
    pub input: Vec<Modality>,
    pub output: Vec<Modality>,
    pub constraints: MediaConstraints,
}

impl Default for Modalities {
    fn default() -> Self {
        Self {
            input: vec![Modality::Text],
            output: vec![Modality::Text],
            constraints: MediaConstraints::default(),
        }
    }
}

/// Sizes are in MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MediaConstraints {
    pub max_image_size_mb: f64,
    pub max_audio_size_mb: f64,
    pub max_video_size_mb: f64,
    pub max_document_size_mb: f64,
    pub max_audio_duration_seconds: u64,
    pub max_video_duration_seconds: u64,
    pub max_images: u64,
    pub allowed_image_types: Vec<String>,
    pub allowed_audio_types: Vec<String>,
    pub allowed_video_types: Vec<String>,
}

impl Default for MediaConstraints {
    fn default() -> Self {
        let types = |list: &[&str]| list.iter().map(|&text| String::from(text)).collect();
        Self {
            max_image_size_mb: 20.0,
            max_audio_size_mb: 25.0,
            max_video_size_mb: 100.0,
            max_document_size_mb: 50.0,
            max_audio_duration_seconds: 600,
            max_video_duration_seconds: 300,
            max_images: 10,
            allowed_image_types: types(&["image/jpeg", "image/png", "image/webp", "image/gif"]),
            allowed_audio_types: types(&["audio/mpeg", "audio/wav", "audio/ogg", "audio/webm"]),
            allowed_video_types: types(&["video/mp4", "video/webm", "video/quicktime"]),
        }
    }
}
