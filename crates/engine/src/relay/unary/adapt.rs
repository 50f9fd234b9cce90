//! Adapts a unary request to one back-end. Fields for features that the back-end is not declared to have are
//! dropped or replaced, and each change is recorded. Whether a feature may be missing is decided by the
//! router, which selects no back-end here that the request does not permit.

use ir::adaptation::{Action, Ledger};
use ir::envelope::{EmbeddingsRequest, ImageRequest, SpeechRequest, TranscriptionRequest};
use ir::{Feature, Payload, Request};

use super::ssml;
use crate::route::Candidate;

/// The requests to send in place of the original; `None` if it needs no change.
pub(super) fn adapt(request: &Request, candidate: &Candidate, ledger: &mut Ledger) -> Option<Vec<Request>> {
    let has = |feature: Feature| candidate.features.contains(&feature);
    if let Payload::Embeddings(asked) = &request.payload {
        return (asked.input.len() > 1 && !has(Feature::Batch)).then(|| split(request, asked, ledger));
    }
    let mut fitting = request.clone();
    let changed = match &mut fitting.payload {
        Payload::Image(asked) => image(asked, &has, ledger),
        Payload::Transcription(asked) => transcription(asked, &has, ledger),
        Payload::Speech(asked) => speech(asked, &has, ledger),
        Payload::Embeddings(_) | Payload::Chat(_) | Payload::Realtime(_) => false,
    };
    changed.then(|| vec![fitting])
}

/// One request per text.
fn split(request: &Request, asked: &EmbeddingsRequest, ledger: &mut Ledger) -> Vec<Request> {
    let count = asked.input.len();
    let reason = "the back-end accepts one text per call";
    ledger.changed("/payload/input", Action::Merged, count, 1, reason);
    let one = |text: &String| {
        let mut part = request.clone();
        if let Payload::Embeddings(asked) = &mut part.payload {
            asked.input = vec![text.clone()];
        }
        part
    };
    asked.input.iter().map(one).collect()
}

fn image(asked: &mut ImageRequest, has: &impl Fn(Feature) -> bool, ledger: &mut Ledger) -> bool {
    let mut changed = false;
    if asked.mask.is_some() && !has(Feature::Mask) {
        asked.mask = None;
        changed = true;
        ledger.dropped("/payload/mask", "the back-end does not support masks");
    }
    if asked.image.is_some() && !has(Feature::ImageInput) {
        asked.image = None;
        // A mask has no effect without its image.
        asked.mask = None;
        changed = true;
        let reason = "the back-end does not support input images; only the prompt is used";
        ledger.dropped("/payload/image", reason);
    }
    if asked.seed.is_some() && !has(Feature::Seed) {
        asked.seed = None;
        changed = true;
        ledger.dropped("/payload/seed", "the back-end is not declared to support seeds");
    }
    changed
}

fn transcription(
    asked: &mut TranscriptionRequest,
    has: &impl Fn(Feature) -> bool,
    ledger: &mut Ledger,
) -> bool {
    let mut changed = false;
    if asked.timestamps == Some(true) && !has(Feature::Timestamps) {
        asked.timestamps = None;
        changed = true;
        ledger.dropped("/payload/timestamps", "the back-end does not support timestamps");
    }
    if asked.diarization == Some(true) && !has(Feature::Diarization) {
        asked.diarization = None;
        changed = true;
        let reason = "the back-end does not support diarization";
        ledger.dropped("/payload/diarization", reason);
    }
    if asked.language.is_some() && !has(Feature::Language) {
        asked.language = None;
        changed = true;
        let reason = "the back-end does not support a language hint";
        ledger.dropped("/payload/language", reason);
    }
    changed
}

fn speech(asked: &mut SpeechRequest, has: &impl Fn(Feature) -> bool, ledger: &mut Ledger) -> bool {
    let mut changed = false;
    if asked.voice.is_some() && !has(Feature::Voices) {
        asked.voice = None;
        changed = true;
        ledger.dropped("/payload/voice", "the back-end does not support voice selection");
    }
    if asked.ssml == Some(true) && !has(Feature::Ssml) {
        asked.input = ssml::strip(&asked.input);
        asked.ssml = None;
        changed = true;
        let reason = "the back-end does not support SSML; the markup was removed";
        ledger.note("/payload/ssml", Action::Replaced, reason);
    }
    changed
}
