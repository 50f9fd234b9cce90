//! What a request needs of a back-end beyond the operation itself. Who writes down what was said hears, and who
//! reads aloud speaks: to be declared for the operation is enough, and says nothing about conversations.

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
