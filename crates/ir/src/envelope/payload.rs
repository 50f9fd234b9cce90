//! Request and response payloads of the six operations. The types define the fields that all providers share;
//! `extra` and `rest` carry all other fields.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::chat::{ChatRequest, ChatResponse};
use crate::ext::{Ext, Map};
use crate::media::Media;
use crate::operation::Operation;
use crate::patch;
use crate::usage::Usage;

#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    Chat(Box<ChatRequest>),
    Embeddings(EmbeddingsRequest),
    Image(Box<ImageRequest>),
    Transcription(Box<TranscriptionRequest>),
    Speech(SpeechRequest),
    Realtime(RealtimeRequest),
}

macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $($body:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $($body)*
            #[serde(default, skip_serializing_if = "Ext::is_empty")]
            pub ext: Ext,
            /// Fields that this type does not define, including `extra`.
            #[serde(flatten)]
            pub rest: Map,
        }
    };
}

record! {
    EmbeddingsRequest {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// A single text is decoded as a list of one.
        #[serde(with = "one_or_many")]
        pub input: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub dimensions: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub encoding_format: Option<String>,
    }
}

record! {
    ImageRequest {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        pub prompt: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub image: Option<Media>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mask: Option<Media>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub n: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub quality: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub style: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub seed: Option<Number>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub response_format: Option<String>,
    }
}

record! {
    TranscriptionRequest {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        pub audio: Media,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub language: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub prompt: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub timestamps: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub diarization: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub temperature: Option<Number>,
    }
}

record! {
    SpeechRequest {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        pub input: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub voice: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub format: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub speed: Option<Number>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ssml: Option<bool>,
    }
}

record! {
    /// A voice session. Its streams are abstract: they identify what a transport attaches.
    RealtimeRequest {
        #[serde(default)]
        pub session_config: Map,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub input_stream: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub output_events: Option<Value>,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum ResponsePayload {
    Chat(Box<ChatResponse>),
    Embeddings(EmbeddingsResponse),
    Image(ImageResponse),
    Transcription(TranscriptionResponse),
    Speech(Box<SpeechResponse>),
    Realtime(Map),
}

record! {
    EmbeddingsResponse {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        pub embeddings: Vec<Embedding>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub usage: Option<Usage>,
    }
}

record! {
    Embedding {
        pub index: u64,
        pub vector: EmbeddingVector,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EmbeddingVector {
    Numbers(Vec<Number>),
    /// Little-endian 32-bit floats in base64.
    Base64(String),
}

record! {
    ImageResponse {
        pub images: Vec<Media>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub created: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub usage: Option<Usage>,
    }
}

record! {
    TranscriptionResponse {
        pub text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub language: Option<String>,
        /// Seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub duration: Option<Number>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub segments: Option<Vec<Value>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub words: Option<Vec<Value>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub usage: Option<Usage>,
    }
}

record! {
    SpeechResponse {
        pub audio: Media,
    }
}

impl Payload {
    pub fn operation(&self) -> Operation {
        match self {
            Self::Chat(_) => Operation::ChatCompletions,
            Self::Embeddings(_) => Operation::Embeddings,
            Self::Image(_) => Operation::ImageGeneration,
            Self::Transcription(_) => Operation::SpeechToText,
            Self::Speech(_) => Operation::TextToSpeech,
            Self::Realtime(_) => Operation::RealtimeVoice,
        }
    }

    pub fn model(&self) -> Option<&str> {
        match self {
            Self::Chat(chat) => chat.model.as_deref(),
            Self::Embeddings(embeddings) => embeddings.model.as_deref(),
            Self::Image(image) => image.model.as_deref(),
            Self::Transcription(speech) => speech.model.as_deref(),
            Self::Speech(speech) => speech.model.as_deref(),
            Self::Realtime(session) => session.session_config.get("model").and_then(Value::as_str),
        }
    }

    /// A dialect-specific field from which a back-end may read the model.
    pub fn other_model(&self) -> Option<&str> {
        let ext = match self {
            Self::Chat(chat) => &chat.ext,
            Self::Embeddings(embeddings) => &embeddings.ext,
            Self::Image(image) => &image.ext,
            Self::Transcription(speech) => &speech.ext,
            Self::Speech(speech) => &speech.ext,
            Self::Realtime(session) => &session.ext,
        };
        ext.names().find(|name| patch::names_model(name))
    }

    /// Replaces the requested model.
    pub fn rename(&mut self, model: &str) {
        let name = Some(String::from(model));
        match self {
            Self::Chat(chat) => chat.model = name,
            Self::Embeddings(embeddings) => embeddings.model = name,
            Self::Image(image) => image.model = name,
            Self::Transcription(speech) => speech.model = name,
            Self::Speech(speech) => speech.model = name,
            Self::Realtime(session) => {
                session
                    .session_config
                    .insert(String::from("model"), Value::from(model));
            }
        }
    }

    pub fn from_json(operation: Operation, value: Value) -> Result<Self, serde_json::Error> {
        Ok(match operation {
            Operation::ChatCompletions => Self::Chat(Box::new(serde_json::from_value(value)?)),
            Operation::Embeddings => Self::Embeddings(serde_json::from_value(value)?),
            Operation::ImageGeneration => Self::Image(Box::new(serde_json::from_value(value)?)),
            Operation::SpeechToText => Self::Transcription(Box::new(serde_json::from_value(value)?)),
            Operation::TextToSpeech => Self::Speech(serde_json::from_value(value)?),
            Operation::RealtimeVoice => Self::Realtime(serde_json::from_value(value)?),
        })
    }

    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        match self {
            Self::Chat(payload) => serde_json::to_value(payload),
            Self::Embeddings(payload) => serde_json::to_value(payload),
            Self::Image(payload) => serde_json::to_value(payload),
            Self::Transcription(payload) => serde_json::to_value(payload),
            Self::Speech(payload) => serde_json::to_value(payload),
            Self::Realtime(payload) => serde_json::to_value(payload),
        }
    }
}

impl ResponsePayload {
    /// Images or audio of a unary response.
    pub fn media_mut(&mut self) -> Vec<&mut Media> {
        match self {
            Self::Image(response) => response.images.iter_mut().collect(),
            Self::Speech(response) => vec![&mut response.audio],
            Self::Chat(_) | Self::Embeddings(_) | Self::Transcription(_) | Self::Realtime(_) => Vec::new(),
        }
    }

    pub fn operation(&self) -> Operation {
        match self {
            Self::Chat(_) => Operation::ChatCompletions,
            Self::Embeddings(_) => Operation::Embeddings,
            Self::Image(_) => Operation::ImageGeneration,
            Self::Transcription(_) => Operation::SpeechToText,
            Self::Speech(_) => Operation::TextToSpeech,
            Self::Realtime(_) => Operation::RealtimeVoice,
        }
    }

    pub fn from_json(operation: Operation, value: Value) -> Result<Self, serde_json::Error> {
        Ok(match operation {
            Operation::ChatCompletions => Self::Chat(Box::new(serde_json::from_value(value)?)),
            Operation::Embeddings => Self::Embeddings(serde_json::from_value(value)?),
            Operation::ImageGeneration => Self::Image(serde_json::from_value(value)?),
            Operation::SpeechToText => Self::Transcription(serde_json::from_value(value)?),
            Operation::TextToSpeech => Self::Speech(Box::new(serde_json::from_value(value)?)),
            Operation::RealtimeVoice => Self::Realtime(serde_json::from_value(value)?),
        })
    }

    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        match self {
            Self::Chat(payload) => serde_json::to_value(payload),
            Self::Embeddings(payload) => serde_json::to_value(payload),
            Self::Image(payload) => serde_json::to_value(payload),
            Self::Transcription(payload) => serde_json::to_value(payload),
            Self::Speech(payload) => serde_json::to_value(payload),
            Self::Realtime(payload) => serde_json::to_value(payload),
        }
    }
}

/// A single text is decoded as a list of one.
mod one_or_many {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
        Ok(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(list) => list,
        })
    }

    pub(super) fn serialize<S: Serializer>(list: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        list.serialize(serializer)
    }
}
