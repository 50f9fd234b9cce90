//! Operations of back-ends, and the vocabularies by which requirements and features are compared. The
//! vocabularies are open: an unknown value is stored and compared as text.

use serde::{Deserialize, Serialize};

/// The six operations. The operation selects the shape of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    ChatCompletions,
    Embeddings,
    ImageGeneration,
    SpeechToText,
    TextToSpeech,
    RealtimeVoice,
}

impl Operation {
    pub const ALL: [Self; 6] = [
        Self::ChatCompletions,
        Self::Embeddings,
        Self::ImageGeneration,
        Self::SpeechToText,
        Self::TextToSpeech,
        Self::RealtimeVoice,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::Embeddings => "embeddings",
            Self::ImageGeneration => "image_generation",
            Self::SpeechToText => "speech_to_text",
            Self::TextToSpeech => "text_to_speech",
            Self::RealtimeVoice => "realtime_voice",
        }
    }
}

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal $(| $alias:literal)*),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($variant,)*
            /// A value that this vocabulary does not define.
            Other(String),
        }

        impl $name {
            /// All defined values.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$variant),*]
            }

            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text $(| $alias)* => Self::$variant,)*
                    _ => Self::Other(text),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                match word {
                    $name::Other(text) => text,
                    known => Self::from(known.as_str()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

vocabulary! {
    /// A feature that a request may require and a back-end may support.
    Feature {
        Stream = "supports_stream",
        Tools = "supports_tools",
        JsonSchema = "supports_json_schema",
        SystemRole = "supports_system_role",
        Batch = "supports_batch",
        Dimensions = "supports_dimensions",
        ImageInput = "supports_image_input",
        DocumentInput = "supports_document_input",
        VideoInput = "supports_video_input",
        AudioInput = "supports_audio_input" | "supports_audio_in",
        AudioOutput = "supports_audio_output" | "supports_audio_out",
        Mask = "supports_mask",
        Seed = "supports_seed",
        Timestamps = "supports_timestamps",
        Language = "supports_language",
        Diarization = "supports_diarization",
        Voices = "supports_voices",
        Formats = "supports_formats",
        Ssml = "supports_ssml",
        BidiStream = "supports_bidi_stream",
        Reasoning = "supports_reasoning",
        Prefill = "supports_prefill",
        TokenInput = "supports_token_input",
        LongContext = "supports_long_context",
    }
}

vocabulary! {
    /// The transport to a back-end.
    Transport {
        Http = "http",
        Websocket = "websocket" | "ws",
        Grpc = "grpc",
        InProcess = "in_process",
    }
}
