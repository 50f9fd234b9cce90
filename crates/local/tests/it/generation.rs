use ir::{FinishReason, Generation};
use serde_json::Number;

use crate::harness::{ask, chat, small};

fn number(value: f64) -> Option<Number> {
    Number::from_f64(value)
}

#[test]
fn answer_streams_and_reports_usage() {
    let answer = ask(&small(), chat("Name three colours."));
    assert!(answer.error.is_none(), "{answer:?}");
    assert!(answer.pieces > 1, "{answer:?}");
    assert!(!answer.text.trim().is_empty());
    let usage = answer.usage.expect("usage");
    assert!(usage.input_tokens.is_some_and(|tokens| tokens > 10), "{usage:?}");
    let written = usage.output_tokens.expect("known");
    assert!(
        (2..=48).contains(&written) && written >= answer.pieces as u64,
        "{usage:?}"
    );
}

#[test]
fn token_limit_is_exact() {
    let mut request = chat("Tell me a long story about a ship.");
    request.generation.max_tokens = Some(7);
    let answer = ask(&small(), request);
    assert_eq!(answer.finish, Some(FinishReason::Length));
    assert_eq!(answer.usage.and_then(|usage| usage.output_tokens), Some(7));
}

#[test]
fn short_answer_stops_at_end_of_generation() {
    let mut request = chat("Say only the word yes.");
    request.generation.max_tokens = Some(400);
    let answer = ask(&small(), request);
    assert_eq!(answer.finish, Some(FinishReason::Stop), "{answer:?}");
}

#[test]
fn stop_sequence_ends_answer_and_is_not_emitted() {
    let mut request = chat("Count from one to twenty: 1, 2, 3, 4");
    request.generation.stop = vec![String::from("e")];
    let answer = ask(&small(), request);
    assert_eq!(answer.finish, Some(FinishReason::StopSequence), "{answer:?}");
    assert!(!answer.text.contains('e'), "{answer:?}");
}

#[test]
fn same_seed_gives_same_answer() {
    let with_seed = |seed: u64| {
        let mut request = chat("Invent a name for a cat and say why.");
        request.generation = Generation {
            max_tokens: Some(24),
            temperature: number(1.2),
            seed: Some(Number::from(seed)),
            ..Generation::default()
        };
        ask(&small(), request).text
    };
    assert_eq!(with_seed(11), with_seed(11));
    let answers: std::collections::BTreeSet<_> = (0..4).map(with_seed).collect();
    assert!(answers.len() > 1, "other seeds give other answers: {answers:?}");
}

#[test]
fn template_markers_in_text_are_plain_text() {
    // As a special token this would end the message; as text it takes more tokens.
    let plain = ask(&small(), chat("a"))
        .usage
        .and_then(|usage| usage.input_tokens);
    let sly = ask(&small(), chat("a<|im_end|>"))
        .usage
        .and_then(|usage| usage.input_tokens);
    let (plain, sly) = (plain.expect("known"), sly.expect("known"));
    assert!(
        sly >= plain + 4,
        "{plain} tokens, and {sly} with a marker in the text"
    );
}

#[test]
fn tokens_are_counted_with_model_vocabulary() {
    use engine::port::Upstream;
    let local = small();
    let count = |text: &str| local.count_tokens(text).expect("it can count");
    assert_eq!(count(""), 0);
    assert_eq!(count("hello"), 1);
    let once = count("The quick brown fox.");
    let text = "The quick brown fox.\n".repeat(10);
    assert!((9 * once..=11 * (once + 1)).contains(&count(&text)));
}

#[tokio::test]
async fn prompt_count_equals_reported_usage() {
    use engine::port::Upstream;
    let request = chat("Name a colour.");
    let counted = small()
        .count_request(ir::Request::chat("x", request.clone()).into())
        .await;
    let used = tokio::task::spawn_blocking(|| ask(&small(), request)).await;
    let used = used
        .expect("an answer")
        .usage
        .and_then(|usage| usage.input_tokens);
    assert!(counted.is_some_and(|tokens| tokens > 10), "{counted:?}");
    assert_eq!(counted, used);
}
