//! A document that is decoded and encoded in the same dialect is unchanged and without losses: for the
//! fixtures, and for randomly mutated fixtures.

use std::sync::LazyLock;

use ir::{Action, Component, Dialect, Ledger};
use proptest::prelude::*;
use serde_json::Value;
use wire::{chat, document};

use crate::fixtures::{Disturbance, disturb, disturbances, fixtures};

fn again_request(dialect: Dialect, body: &Value) -> Option<(Value, Ledger)> {
    let request = chat::decode_request(dialect, body.clone()).ok()?;
    let mut ledger = Ledger::new(Component::Adapter);
    let again = chat::encode_request(dialect, &request, &mut ledger).unwrap();
    Some((again, ledger))
}

fn again_response(dialect: Dialect, body: &Value) -> Option<(Value, Ledger)> {
    let mut response = chat::decode_response(dialect, body.clone()).ok()?;
    response.warnings.clear();
    let mut ledger = Ledger::new(Component::Adapter);
    let again = chat::encode_response(dialect, &response, &mut ledger).unwrap();
    Some((again, ledger))
}

type Again = fn(Dialect, &Value) -> Option<(Value, Ledger)>;
const KINDS: [(&str, Again); 2] = [
    (".request.json", again_request),
    (".response.json", again_response),
];

/// The dialects of the other operations, through the canonical envelope.
const OTHERS: [Dialect; 4] = [
    Dialect::OpenaiEmbeddings,
    Dialect::OpenaiImages,
    Dialect::OpenaiTranscriptions,
    Dialect::OpenaiSpeech,
];

fn again_other(dialect: Dialect, body: &Value) -> Option<(Value, Ledger)> {
    let request = document::decode_request(dialect, body.clone()).ok()?;
    let canonical = serde_json::to_value(&request).unwrap();
    assert_eq!(serde_json::from_value::<ir::Request>(canonical).unwrap(), request);
    let mut ledger = Ledger::new(Component::Adapter);
    let again = document::encode_request(dialect, &request, &mut ledger).unwrap();
    Some((again, ledger))
}

fn again_other_response(dialect: Dialect, body: &Value) -> Option<(Value, Ledger)> {
    let response = document::decode_response(dialect, body.clone()).ok()?;
    if matches!(response.result, ir::Outcome::Error(_)) {
        return None;
    }
    let canonical = serde_json::to_value(&response).unwrap();
    assert_eq!(
        serde_json::from_value::<ir::Response>(canonical).unwrap(),
        response
    );
    let mut ledger = Ledger::new(Component::Adapter);
    let again = document::encode_response(dialect, &response, &mut ledger).unwrap();
    Some((again, ledger))
}

fn all() -> Vec<(Dialect, Again, Value)> {
    let mut all = Vec::new();
    for dialect in chat::DIALECTS {
        for (suffix, again) in KINDS {
            all.extend(
                fixtures(*dialect, suffix)
                    .into_iter()
                    .map(|(_, body)| (*dialect, again, body)),
            );
        }
    }
    for dialect in OTHERS {
        for (suffix, again) in [
            (".request.json", again_other as Again),
            (".response.json", again_other_response as Again),
        ] {
            all.extend(
                fixtures(dialect, suffix)
                    .into_iter()
                    .map(|(_, body)| (dialect, again, body)),
            );
        }
    }
    all
}

#[test]
fn other_operations_roundtrip() {
    for (dialect, again, body) in all().into_iter().filter(|(dialect, ..)| OTHERS.contains(dialect)) {
        let (again, ledger) = again(dialect, &body).unwrap();
        assert_eq!(again, body, "{dialect}");
        assert_eq!(ledger.entries(), [], "{dialect}");
    }
}

#[test]
fn fixtures_roundtrip() {
    for dialect in chat::DIALECTS {
        for (suffix, again) in KINDS {
            let fixtures = fixtures(*dialect, suffix);
            assert!(!fixtures.is_empty(), "{dialect} has no fixture {suffix}");
            for (name, body) in fixtures {
                let (again, ledger) = again(*dialect, &body).unwrap_or_else(|| panic!("{dialect}/{name}"));
                assert_eq!(again, body, "{dialect}/{name}");
                assert_eq!(ledger.entries(), [], "{dialect}/{name}");
            }
        }
    }
}

#[test]
fn fixtures_pass_field_type_checks() {
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic] {
        for (name, body) in fixtures(dialect, ".request.json") {
            let found = wire::field_type::find_mismatch(dialect, body.as_object().unwrap());
            assert_eq!(found, None, "{dialect}/{name}");
        }
    }
}

/// A mutated document that is decoded at all is restored unchanged.
fn check(body: &Value, dialect: Dialect, again: Again, changes: &[Disturbance]) -> Result<(), TestCaseError> {
    let mut body = body.clone();
    for change in changes {
        disturb(&mut body, change);
    }
    let Some((again, ledger)) = again(dialect, &body) else {
        return Err(TestCaseError::reject("not a document of the dialect"));
    };
    let mut differs = Vec::new();
    differences(&body, &again, "", &mut differs);
    prop_assert!(differs.is_empty(), "{}: {:#?}", dialect, differs);
    let entries = ledger.entries();
    prop_assert!(
        entries.iter().all(|entry| entry.action != Action::Dropped),
        "{:?}",
        entries
    );
    Ok(())
}

/// The differences between two documents.
fn differences(expected: &Value, found: &Value, pointer: &str, out: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let side = |map: &ir::Map| map.get(key).cloned().unwrap_or_else(|| Value::from("(absent)"));
                differences(&side(a), &side(b), &format!("{pointer}/{key}"), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{pointer}/{at}"), out);
            }
        }
        (a, b) if a != b => out.push(format!("{pointer}: {a} became {b}")),
        _ => {}
    }
}

/// A mutated fixture of a dialect.
pub(crate) fn disturbed(
    dialect: Dialect,
    changes: &[Disturbance],
    pick: &prop::sample::Index,
) -> Result<(), TestCaseError> {
    let mut all = Vec::new();
    for (suffix, again) in KINDS {
        all.extend(
            fixtures(dialect, suffix)
                .into_iter()
                .map(|(_, body)| (again, body)),
        );
    }
    let (again, body) = pick.get(&all);
    check(body, dialect, *again, changes)
}

/// The fixtures, loaded once.
static ALL: LazyLock<Vec<(Dialect, Again, Value)>> = LazyLock::new(all);

macro_rules! identity_law {
    ($($name:ident: $dialects:expr,)*) => {
        proptest! {
            #![proptest_config(crate::fixtures::cases(96))]
            $(#[test]
            fn $name(changes in disturbances(), pick: prop::sample::Index) {
                let mine: Vec<_> = ALL.iter().filter(|(dialect, ..)| $dialects.contains(dialect)).collect();
                let (dialect, again, body) = pick.get(&mine);
                check(body, *dialect, *again, &changes)?;
            })*
        }
    };
}

identity_law! {
    mutated_openai_chat_roundtrip: [Dialect::OpenaiChat],
    mutated_openai_responses_roundtrip: [Dialect::OpenaiResponses],
    mutated_anthropic_roundtrip: [Dialect::Anthropic],
    mutated_gemini_roundtrip: [Dialect::Gemini],
    mutated_ollama_roundtrip: [Dialect::Ollama],
    mutated_other_operations_roundtrip: OTHERS,
}
