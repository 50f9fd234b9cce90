//! Prompts with the same beginning are evaluated from the first difference, and the answers do not change.

use ir::{ChatRequest, Message, Role};
use local::{LocalUpstream, Options};

use crate::harness::{Answer, ask, chat, options};

/// Not shared with other tests: every length of the context is another loaded model.
fn model(context_tokens: u32) -> LocalUpstream {
    LocalUpstream::new(&Options {
        context_tokens,
        ..options()
    })
}

fn with_instructions(topic: &str, text: &str) -> ChatRequest {
    let mut request = chat(text);
    let rules = (1..16).map(|rule| format!("Rule {rule} about {topic}: answer briefly and name {topic}.\n"));
    request.messages[0] = Message::text(Role::System, rules.collect::<String>());
    request.generation.max_tokens = Some(12);
    request
}

fn counts(answer: &Answer) -> (u64, u64) {
    assert!(answer.error.is_none(), "{answer:?}");
    let usage = answer.usage.as_ref().expect("usage");
    (
        usage.input_tokens.expect("known"),
        usage.cache_read_tokens.expect("known"),
    )
}

#[test]
fn same_instructions_are_evaluated_once() {
    let local = model(1024);
    let first = ask(&local, with_instructions("ships", "Name a ship."));
    let (length, reused) = counts(&first);
    assert_eq!(reused, 0);
    assert!(length > 150, "{length}");
    let second = ask(&local, with_instructions("ships", "What is a harbour?"));
    let (length, reused) = counts(&second);
    // Whole batches are reused; the question and the end of the template are not.
    let left = length - reused;
    assert!(
        (1..=64).contains(&left),
        "{left} of {length} tokens were evaluated"
    );
    // The same request to another copy of the model, which evaluates everything.
    let whole = ask(&model(1023), with_instructions("ships", "What is a harbour?"));
    assert_eq!(counts(&whole), (length, 0));
    assert_eq!(second.text, whole.text);
    // An identical request needs the scores of the last token at least.
    let again = ask(&local, with_instructions("ships", "What is a harbour?"));
    assert!(counts(&again).1 < length);
    assert_eq!(again.text, whole.text);
}

#[test]
fn alternating_instructions_are_evaluated_once() {
    let local = model(1022);
    let first = ask(&local, with_instructions("ships", "Name a ship."));
    let other = ask(&local, with_instructions("trees", "Name a tree."));
    assert!(counts(&other).1 < 64, "{other:?}");
    for _ in 0..2 {
        for (topic, expected) in [("ships", &first), ("trees", &other)] {
            let question = if topic == "ships" {
                "Name a ship."
            } else {
                "Name a tree."
            };
            let answer = ask(&local, with_instructions(topic, question));
            let (length, reused) = counts(&answer);
            assert!((128..length).contains(&reused), "{topic}: {reused} of {length}");
            assert_eq!(answer.text, expected.text, "{topic}");
        }
    }
}

#[test]
fn cancelled_prompt_does_not_change_later_answers() {
    use crate::harness::{block_on, open};
    use futures::StreamExt;
    let local = model(1021);
    let expected = ask(&local, with_instructions("ships", "Name a ship."));
    let mut cancelled = open(&local, with_instructions("trees", &"Name a tree. ".repeat(40)));
    // The first event is sent before the prompt is evaluated.
    block_on(cancelled.next());
    drop(cancelled);
    let answer = ask(&local, with_instructions("ships", "Name a ship."));
    assert_eq!(answer.text, expected.text);
}
