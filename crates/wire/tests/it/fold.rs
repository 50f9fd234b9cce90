//! Property of all stream dialects: folding a stream gives the unary response, for any split of the bytes
//! and any granularity of the deltas.

use ir::{ChatResponse, Component, Delta, Dialect, Event, Fold, Ledger};
use proptest::prelude::*;
use wire::{Decoder, Encoder, chat};

use crate::generators::{answer, information};

pub(crate) fn fold_bytes(dialect: Dialect, bytes: &[u8], size: usize) -> Result<ChatResponse, ir::Error> {
    let mut decoder = Decoder::new(dialect).unwrap();
    let mut events = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        decoder.push(piece, &mut events);
    }
    decoder.finish(&mut events);
    let mut fold = Fold::new();
    events.into_iter().for_each(|event| fold.push(event));
    fold.finish()
}

/// Splits every text in the events into pieces of at most `size` characters.
fn finer(events: Vec<Event>, size: usize) -> Vec<Event> {
    let pieces = |text: &str| -> Vec<String> {
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(size).map(|piece| piece.iter().collect()).collect()
    };
    let cut = |index: u32, delta: Delta| -> Vec<Event> {
        let deltas: Vec<Delta> = match &delta {
            Delta::Text { text } => pieces(text)
                .into_iter()
                .map(|text| Delta::Text { text })
                .collect(),
            Delta::Reasoning { text } => pieces(text)
                .into_iter()
                .map(|text| Delta::Reasoning { text })
                .collect(),
            Delta::ToolArguments { json } => pieces(json)
                .into_iter()
                .map(|json| Delta::ToolArguments { json })
                .collect(),
            _ => vec![delta],
        };
        deltas
            .into_iter()
            .map(|delta| Event::BlockDelta { index, delta })
            .collect()
    };
    events
        .into_iter()
        .flat_map(|event| match event {
            Event::BlockDelta { index, delta } => cut(index, delta),
            event => vec![event],
        })
        .collect()
}

pub(crate) fn stream_of(dialect: Dialect, events: &[Event]) -> Vec<u8> {
    let mut encoder = Encoder::new(dialect).unwrap();
    let mut ledger = Ledger::new(Component::Adapter);
    let mut bytes = Vec::new();
    for event in events {
        encoder.push(event, &mut bytes, &mut ledger);
    }
    encoder.finish(&mut bytes);
    bytes
}

fn check(
    dialect: Dialect,
    response: &ChatResponse,
    letters: usize,
    size: usize,
) -> Result<(), TestCaseError> {
    let mut ledger = Ledger::new(Component::Adapter);
    let whole = chat::encode_response(dialect, response, &mut ledger).unwrap();
    let whole = chat::decode_response(dialect, whole).unwrap();
    let events = finer(ir::fold::unfold(response), letters);
    let bytes = stream_of(dialect, &events);
    let folded = fold_bytes(dialect, &bytes, size).unwrap();
    prop_assert_eq!(
        information(folded),
        information(whole),
        "{}\n{}",
        dialect,
        String::from_utf8_lossy(&bytes)
    );
    Ok(())
}

macro_rules! fold_law {
    ($($name:ident: $dialect:expr,)*) => {
        proptest! {
            #![proptest_config(crate::fixtures::cases(128))]
            $(#[test]
            fn $name(response in answer($dialect), letters in 1_usize..5, size in 1_usize..64) {
                check($dialect, &response, letters, size)?;
            })*
        }
    };
}

fold_law! {
    openai_chat_folds: Dialect::OpenaiChat,
    openai_responses_folds: Dialect::OpenaiResponses,
    anthropic_folds: Dialect::Anthropic,
    gemini_folds: Dialect::Gemini,
    ollama_folds: Dialect::Ollama,
}

/// A stream that is truncated anywhere before its end is an error, never a short response.
#[test]
fn truncated_stream_is_an_error() {
    for dialect in chat::DIALECTS {
        let mut response = ChatResponse {
            id: Some(String::from("i")),
            ..ChatResponse::default()
        };
        response.parts.push(ir::Part::text("hello world"));
        response.finish_reason = Some(ir::FinishReason::Stop);
        let events = ir::fold::unfold(&response);
        let before_finish = events.len() - 1;
        let mut encoder = Encoder::new(*dialect).unwrap();
        let mut ledger = Ledger::new(Component::Adapter);
        let mut bytes = Vec::new();
        for event in &events[..before_finish] {
            encoder.push(event, &mut bytes, &mut ledger);
        }
        for end in 0..bytes.len() {
            let error = fold_bytes(*dialect, &bytes[..end], 7).unwrap_err();
            assert_eq!(error.kind, ir::ErrorKind::Network, "{dialect} {end}");
        }
    }
}

/// In every dialect an error event ends the stream: no end marker follows it.
#[test]
fn stream_error_is_terminal() {
    for dialect in chat::DIALECTS {
        let mut error = ir::Error::new(ir::ErrorKind::RateLimited, ir::Phase::MidStream, "slow down");
        error.status = Some(429);
        let events = [
            Event::Started {
                id: None,
                model: None,
                created: None,
            },
            Event::BlockStart {
                index: 0,
                block: ir::Block::Text,
            },
            Event::text(0, "he"),
            Event::Error { error },
            Event::text(0, "llo"),
            Event::Finish {
                reason: ir::FinishReason::Stop,
            },
        ];
        let bytes = stream_of(*dialect, &events);
        let error = fold_bytes(*dialect, &bytes, 5).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ir::ErrorKind::RateLimited, "slow down"),
            "{dialect}"
        );
        let text = String::from_utf8(bytes).unwrap();
        for mark in [
            "[DONE]",
            "message_stop",
            "response.completed",
            "\"done\":true",
            "llo",
        ] {
            assert!(!text.contains(mark), "{dialect}: {mark} follows an error");
        }
    }
}
