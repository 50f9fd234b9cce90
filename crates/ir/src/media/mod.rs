//! Images, audio, video and documents: one type for all dialects.

mod base64_text;
mod foreign_id;
mod handle;
mod id;
mod mime;
mod reference;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

pub use base64_text::{Base64, InvalidBase64};
pub use foreign_id::ForeignIds;
pub use handle::{MediaBytes, MediaHandle, MediaReader};
pub use id::{MediaId, ParseMediaIdError, StoredRef};
pub use mime::{mime_of_audio_format, sniff};

use crate::dialect::Dialect;
use crate::ext::Ext;

/// One piece of media. Its JSON is the `MediaRef` of the canonical documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    pub source: MediaSource,
    pub kind: MediaKind,
    pub mime: Option<String>,
    pub mime_trust: MimeTrust,
    pub facts: MediaFacts,
    /// Text for targets that cannot receive the media.
    pub text_fallback: Option<String>,
    pub hints: MediaHints,
    /// RFC 3339.
    pub expires_at: Option<String>,
    /// Generation parameters, if a model generated it.
    pub generation: Option<Value>,
    /// The checksum declared by the sender; not verified.
    pub checksum: Option<Checksum>,
    pub ext: Ext,
}

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaSource {
    Inline(Base64),
    Stored(StoredRef),
    /// Temporary bytes, readable for the lifetime of this value. A document cannot name them.
    Handle(MediaHandle),
    Remote(String),
    LocalFile(String),
    ProviderFile {
        backend: String,
        id: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    Image,
    Audio,
    Video,
    Document,
    #[serde(rename = "media")]
    Other,
}

/// How the type was determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MimeTrust {
    #[default]
    Declared,
    Inferred,
    /// Detected from the first bytes.
    Verified,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MediaFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_rate_hz: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MediaHints {
    /// `low`, `high`, `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_frame: Option<VideoFrame>,
}

/// The position of a frame that was extracted from a video.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VideoFrame {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_sec: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_index: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checksum {
    pub algorithm: String,
    pub value: String,
}

impl Checksum {
    /// From the bytes of a SHA-256.
    pub fn from_sha256(digest: &[u8]) -> Self {
        Self {
            algorithm: String::from("sha256"),
            value: hex::encode(digest),
        }
    }
}

impl MediaKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Document => "document",
            Self::Other => "media",
        }
    }

    pub fn from_word(word: &str) -> Self {
        match word {
            "image" => Self::Image,
            "audio" => Self::Audio,
            "video" => Self::Video,
            "document" => Self::Document,
            _ => Self::Other,
        }
    }

    pub fn of_mime(mime: &str) -> Self {
        match mime.split('/').next().unwrap_or_default() {
            "image" => Self::Image,
            "audio" => Self::Audio,
            "video" => Self::Video,
            "text" => Self::Document,
            "application" if mime != "application/octet-stream" => Self::Document,
            _ => Self::Other,
        }
    }
}

impl Media {
    pub fn new(source: MediaSource, mime: Option<String>) -> Self {
        let kind = mime.as_deref().map_or(MediaKind::Other, MediaKind::of_mime);
        Self {
            source,
            kind,
            mime,
            mime_trust: MimeTrust::Declared,
            facts: MediaFacts::default(),
            text_fallback: None,
            hints: MediaHints::default(),
            expires_at: None,
            generation: None,
            checksum: None,
            ext: Ext::default(),
        }
    }

    #[must_use]
    pub fn with_kind(mut self, kind: MediaKind) -> Self {
        self.kind = kind;
        self
    }

    /// A web address, or inline bytes if it is a base64 `data:` URL.
    pub fn from_url(url: &str) -> Self {
        match split_data_url(url) {
            Some((mime, data)) => {
                let mime = (!mime.is_empty()).then(|| String::from(mime));
                Self::new(MediaSource::Inline(Base64::from_text(data)), mime)
            }
            None => Self::new(MediaSource::Remote(String::from(url)), None),
        }
    }

    /// A `data:` URL of inline bytes, or the remote address. Stored media has no URL.
    pub fn to_url(&self) -> Option<String> {
        match &self.source {
            MediaSource::Inline(data) => {
                let mime = self.mime.as_deref().unwrap_or_default();
                Some(format!("data:{mime};base64,{}", data.as_str()))
            }
            MediaSource::Remote(url) => Some(url.clone()),
            _ => None,
        }
    }

    /// The declared type, or the type detected from the first bytes.
    pub fn mime_or_sniffed(&self) -> Option<String> {
        if let Some(mime) = &self.mime {
            return Some(mime.clone());
        }
        match &self.source {
            MediaSource::Inline(data) => sniff(&data.head()).map(String::from),
            MediaSource::Handle(handle) => sniff(handle.head()).map(String::from),
            _ => None,
        }
    }

    /// Replaces a foreign id by its [`MediaId`], if the table contains it.
    pub fn resolve(&mut self, aliases: &ForeignIds) {
        if let MediaSource::Stored(StoredRef::Foreign { dialect, text }) = &self.source
            && let Some(id) = aliases.id(*dialect, text)
        {
            self.source = MediaSource::Stored(StoredRef::Id(id));
        }
    }
}

/// Splits `data:MIME;base64,DATA`. The type includes its parameters.
fn split_data_url(url: &str) -> Option<(&str, &str)> {
    let rest = url
        .get(..5)
        .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))
        .and_then(|_| url.get(5..))?;
    let (head, data) = rest.split_once(',')?;
    Some((head.strip_suffix(";base64")?, data))
}

/// The dialect whose stored media ids are URIs.
pub(crate) const URI_DIALECT: Dialect = Dialect::MediaRef;
