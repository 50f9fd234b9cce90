//! Requirements of a request beyond the operation itself. Transcription implies audio input and speech
//! implies audio output: the declared operation is enough, and the chat features of the same name are not
//! required.

use ir::Request;
use ir::envelope::Requirements;
use ir::operation::{Feature, Operation};

pub(crate) fn needs(request: &Request) -> Requirements {
    let mut needs = request.needs();
    let implied = match request.operation() {
        Operation::SpeechToText => Some(Feature::AudioInput),
        Operation::TextToSpeech => Some(Feature::AudioOutput),
        Operation::ChatCompletions
        | Operation::Embeddings
        | Operation::ImageGeneration
        | Operation::RealtimeVoice => None,
    };
    if let Some(feature) = implied {
        needs.required_features.remove(&feature);
    }
    needs
}
