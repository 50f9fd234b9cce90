//! The dialects of the codecs, by the names used in `ext`, on the command line and in adaptations.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A dialect. `harmony-schema` is the message protocol of the format document, not the token format of
/// gpt-oss with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    OpenaiChat,
    OpenaiResponses,
    OpenaiEmbeddings,
    OpenaiImages,
    OpenaiTranscriptions,
    OpenaiSpeech,
    Anthropic,
    Gemini,
    Ollama,
    Canonical,
    Cognitive,
    MediaRef,
    ContentBlock,
    HarmonySchema,
}

impl Dialect {
    pub const ALL: [Self; 14] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::OpenaiEmbeddings,
        Self::OpenaiImages,
        Self::OpenaiTranscriptions,
        Self::OpenaiSpeech,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::Canonical,
        Self::Cognitive,
        Self::MediaRef,
        Self::ContentBlock,
        Self::HarmonySchema,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiEmbeddings => "openai-embeddings",
            Self::OpenaiImages => "openai-images",
            Self::OpenaiTranscriptions => "openai-transcriptions",
            Self::OpenaiSpeech => "openai-speech",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Canonical => "canonical",
            Self::Cognitive => "cognitive",
            Self::MediaRef => "media-ref",
            Self::ContentBlock => "content-block",
            Self::HarmonySchema => "harmony-schema",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == text)
            .ok_or_else(|| UnknownDialect(String::from(text)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dialect `{0}`")]
pub struct UnknownDialect(pub String);
