//! Features that a back-end must support for a request. They are derived from the payload; requirements
//! that the request declares are added and do not replace them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::chat::{ChatRequest, Part, PartBody, ResponseFormat, Role};
use crate::envelope::payload::Payload;
use crate::ext::Map;
use crate::media::MediaKind;
use crate::operation::{Feature, Operation, Transport};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirements {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub required_ops: BTreeSet<Operation>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub required_features: BTreeSet<Feature>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub required_transports: BTreeSet<Transport>,
    /// Preferred, not required.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub preferred_features: BTreeSet<Feature>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferred_backends: Vec<String>,
    #[serde(flatten)]
    pub rest: Map,
}

impl Requirements {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The requirements of the payload.
    pub fn of(payload: &Payload) -> Self {
        let mut needs = Self::default();
        needs.required_ops.insert(payload.operation());
        let mut need = |wanted: bool, feature: Feature| {
            if wanted {
                needs.required_features.insert(feature);
            }
        };
        match payload {
            Payload::Chat(chat) => of_chat(chat, &mut need),
            Payload::Embeddings(embeddings) => {
                need(embeddings.input.len() > 1, Feature::Batch);
                need(embeddings.dimensions.is_some(), Feature::Dimensions);
            }
            Payload::Image(image) => {
                need(image.image.is_some(), Feature::ImageInput);
                need(image.mask.is_some(), Feature::Mask);
                need(image.seed.is_some(), Feature::Seed);
            }
            Payload::Transcription(speech) => {
                need(true, Feature::AudioInput);
                need(speech.timestamps == Some(true), Feature::Timestamps);
                need(speech.language.is_some(), Feature::Language);
                need(speech.diarization == Some(true), Feature::Diarization);
            }
            Payload::Speech(speech) => {
                need(true, Feature::AudioOutput);
                need(speech.voice.is_some(), Feature::Voices);
                need(speech.format.is_some(), Feature::Formats);
                need(speech.ssml == Some(true), Feature::Ssml);
            }
            Payload::Realtime(_) => need(true, Feature::BidiStream),
        }
        needs
    }

    /// The union of both.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        self.required_ops.extend(&other.required_ops);
        self.required_features
            .extend(other.required_features.iter().cloned());
        self.required_transports
            .extend(other.required_transports.iter().cloned());
        self.preferred_features
            .extend(other.preferred_features.iter().cloned());
        for name in &other.preferred_backends {
            if !self.preferred_backends.contains(name) {
                self.preferred_backends.push(name.clone());
            }
        }
        self
    }
}

fn of_chat(chat: &ChatRequest, need: &mut impl FnMut(bool, Feature)) {
    need(chat.streams(), Feature::Stream);
    need(chat.uses_tools(), Feature::Tools);
    need(
        matches!(chat.response_format, Some(ResponseFormat::JsonSchema { .. })),
        Feature::JsonSchema,
    );
    need(chat.generation.seed.is_some(), Feature::Seed);
    need(
        chat.modalities.iter().any(|word| word == "audio"),
        Feature::AudioOutput,
    );
    let thinks = chat
        .reasoning
        .as_ref()
        .is_some_and(|reasoning| reasoning.enabled != Some(false));
    need(thinks, Feature::Reasoning);
    for message in &chat.messages {
        need(
            matches!(message.role, Role::System | Role::Developer),
            Feature::SystemRole,
        );
        for part in &message.parts {
            of_part(part, need);
        }
    }
}

fn of_part(part: &Part, need: &mut impl FnMut(bool, Feature)) {
    match &part.body {
        PartBody::Media(media) => match media.kind {
            MediaKind::Image => need(true, Feature::ImageInput),
            MediaKind::Audio => need(true, Feature::AudioInput),
            MediaKind::Video => need(true, Feature::VideoInput),
            MediaKind::Document => need(true, Feature::DocumentInput),
            MediaKind::Other => {}
        },
        PartBody::ToolResult(result) => result.content.iter().for_each(|part| of_part(part, need)),
        _ => {}
    }
}
