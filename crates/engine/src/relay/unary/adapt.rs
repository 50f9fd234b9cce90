//! A request as one back-end can take it. What the back-end is not declared to do is left out or made good in
//! another way, and each such change is announced; whether it may happen at all was the router's to say, which
//! sends nothing here that the request does not let go.

use ir::adaptation::{Action, Ledger};
use ir::envelope::{EmbeddingsRequest, ImageRequest, SpeechRequest, TranscriptionRequest};
use ir::{Feature, Payload, Request};

use super::ssml;
use crate::route::Candidate;

/// What is asked in place of the request, one by one; `None` where it fits as it is.
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

/// One request for each text.
fn split(request: &Request, asked: &EmbeddingsRequest, ledger: &mut Ledger) -> Vec<Request> {
    let count = asked.input.len();
    let reason = "the back-end takes one text at a time";
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
        ledger.dropped("/payload/mask", "the back-end takes no mask");
    }
    if asked.image.is_some() && !has(Feature::ImageInput) {
        asked.image = None;
        // Without its picture a mask is for nothing.
        asked.mask = None;
        changed = true;
        let reason = "the back-end takes no picture; it draws from the text alone";
        ledger.dropped("/payload/image", reason);
    }
    if asked.seed.is_some() && !has(Feature::Seed) {
        asked.seed = None;
        changed = true;
        ledger.dropped("/payload/seed", "the back-end is not declared to take one");
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
        ledger.dropped("/payload/timestamps", "the back-end does not tell times");
    }
    if asked.diarization == Some(true) && !has(Feature::Diarization) {
        asked.diarization = None;
        changed = true;
        let reason = "the back-end does not tell speakers apart";
        ledger.dropped("/payload/diarization", reason);
    }
    if asked.language.is_some() && !has(Feature::Language) {
        asked.language = None;
        changed = true;
        let reason = "the back-end cannot be told the language";
        ledger.dropped("/payload/language", reason);
    }
    changed
}

fn speech(asked: &mut SpeechRequest, has: &impl Fn(Feature) -> bool, ledger: &mut Ledger) -> bool {
    let mut changed = false;
    if asked.voice.is_some() && !has(Feature::Voices) {
        asked.voice = None;
        changed = true;
        ledger.dropped("/payload/voice", "the back-end has one voice");
    }
    if asked.ssml == Some(true) && !has(Feature::Ssml) {
        asked.input = ssml::strip(&asked.input);
        asked.ssml = None;
        changed = true;
        let reason = "the back-end reads no marks; they are taken out of the text";
        ledger.note("/payload/ssml", Action::Replaced, reason);
    }
    changed
}
