//! Answers to the parts of one request as one answer.

use ir::envelope::EmbeddingsResponse;
use ir::{Error, ErrorKind, Phase, ResponsePayload, Usage};

use crate::port::UnaryResponse;

/// The vectors one behind another, and what all of them used together; unknown as soon as one is.
pub(super) fn merge(answers: Vec<UnaryResponse>) -> Result<UnaryResponse, Error> {
    let mut answers = answers.into_iter();
    let Some(mut whole) = answers.next() else {
        return Err(broken());
    };
    let ResponsePayload::Embeddings(all) = &mut whole.payload else {
        return Err(broken());
    };
    for answer in answers {
        let ResponsePayload::Embeddings(more) = answer.payload else {
            return Err(broken());
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
    // One server's words about one part say nothing about the whole.
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

fn broken() -> Error {
    let message = "the parts of the answer do not fit together";
    Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message)
}
