//! Facts about media after a complete inspection. Unknown facts are `None`, never zero.

use ir::media::MediaFacts;

use crate::format::Format;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub format: Format,
    pub size_bytes: u64,
    pub sha256: String,
    /// Of the upright image, after applying its orientation.
    pub width: Option<u64>,
    pub height: Option<u64>,
    /// Frames of an animation; 1 for a still image.
    pub frames: Option<u64>,
    pub duration_ms: Option<u64>,
    pub sample_rate_hz: Option<u64>,
    pub channels: Option<u64>,
    pub pages: Option<u64>,
}

impl Facts {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            size_bytes: 0,
            sha256: String::new(),
            width: None,
            height: None,
            frames: None,
            duration_ms: None,
            sample_rate_hz: None,
            channels: None,
            pages: None,
        }
    }

    pub fn to_media_facts(&self) -> MediaFacts {
        MediaFacts {
            size_bytes: Some(self.size_bytes),
            sha256: Some(self.sha256.clone()),
            width: self.width,
            height: self.height,
            duration_ms: self.duration_ms,
            sample_rate_hz: self.sample_rate_hz,
            channels: self.channels,
            pages: self.pages,
        }
    }
}
