//! Merges the responses to the parts of one request.

use ir::envelope::EmbeddingsResponse;
use ir::{Error, ErrorKind, Phase, ResponsePayload, Usage};

use crate::port::UnaryResponse;

/// Concatenates the vectors and sums the usage; the sum is unknown if any part of it is.
pub(super) fn merge(answers: Vec<UnaryResponse>) -> Result<UnaryResponse, Error> {
    let mut answers = answers.into_iter();
    let Some(mut whole) = answers.next() else {
        return Err(mismatch());
    };
    let ResponsePayload::Embeddings(all) = &mut whole.payload else {
        return Err(mismatch());
    };
    for answer in answers {
        let ResponsePayload::Embeddings(more) = answer.payload else {
            return Err(mismatch());
        };
        append(all, more);
        whole.usage = match (whole.usage.take(), answer.usage) {
            (Some(so_far), Some(usage)) => Some(sum(&so_far, &usage)),
            _ => None,
        };
        for adaptation in answer.adaptations {
            if !whole.adaptations.contains(&adaptation) {
                whole.adaptations.push(adaptation);
            }
        }
    }
    all.usage.clone_from(&whole.usage);
    // The raw response of one part does not describe the whole.
    whole.raw = None;
    Ok(whole)
}

fn append(all: &mut EmbeddingsResponse, more: EmbeddingsResponse) {
    for mut one in more.embeddings {
        one.index = all.embeddings.len() as u64;
        all.embeddings.push(one);
    }
}

fn sum(one: &Usage, other: &Usage) -> Usage {
    let add = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
    Usage {
        input_tokens: add(one.input_tokens, other.input_tokens),
        output_tokens: add(one.output_tokens, other.output_tokens),
        estimated: one.estimated || other.estimated,
        ..Usage::default()
    }
}

fn mismatch() -> Error {
    let message = "the responses of the parts do not match";
    Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message)
}
