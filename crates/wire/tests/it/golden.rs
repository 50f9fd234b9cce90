//! Golden tests: beside each input file one snapshot per other dialect, with everything that was lost on the
//! way. `gemini/turns.request.anthropic.snap` is `gemini/turns.request.json` as an Anthropic request.

use ir::{Component, Dialect, Ledger, MediaSource, PartBody};
use serde_json::json;
use wire::{chat, document};

use crate::convert::{request, request_into, response, response_into};
use crate::fixtures::fixtures;

/// Input files of vendors' dialects, and the dialects of their snapshots.
const REQUESTS: &[(Dialect, &str, &[Dialect])] = &[
    (
        Dialect::Gemini,
        "turns",
        &[Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Ollama],
    ),
    (
        Dialect::Ollama,
        "full",
        &[Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Gemini],
    ),
    (Dialect::OpenaiChat, "full", &[Dialect::Gemini, Dialect::Ollama]),
    (Dialect::Anthropic, "full", &[Dialect::Gemini]),
];

const RESPONSES: &[(Dialect, &str, &[Dialect])] = &[
    (
        Dialect::Gemini,
        "full",
        &[Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Ollama],
    ),
    (
        Dialect::Ollama,
        "calls",
        &[Dialect::OpenaiChat, Dialect::Anthropic, Dialect::Gemini],
    ),
    (Dialect::OpenaiChat, "calls", &[Dialect::Gemini, Dialect::Ollama]),
    (Dialect::Anthropic, "full", &[Dialect::Gemini, Dialect::Ollama]),
];

/// Snapshots are in the folder of their input file.
fn beside_inputs(dialect: Dialect, test: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../fixtures/{dialect}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(test);
}

#[test]
fn vendor_requests_in_other_dialects() {
    for (from, name, targets) in REQUESTS {
        beside_inputs(*from, || {
            for to in *targets {
                let asked = with_readable_media(request(*from, name), *to);
                insta::assert_json_snapshot!(format!("{name}.request.{to}"), request_into(*to, &asked));
            }
        });
    }
}

/// The request without media that the target cannot read, because encoding it is an error.
fn with_readable_media(mut asked: ir::ChatRequest, to: Dialect) -> ir::ChatRequest {
    let is_readable = |source: &MediaSource| match to {
        Dialect::Gemini => !matches!(source, MediaSource::ProviderFile { .. }),
        Dialect::Ollama => matches!(source, MediaSource::Inline(_)),
        _ => true,
    };
    for message in &mut asked.messages {
        message.parts.retain(|part| match &part.body {
            PartBody::Media(media) => is_readable(&media.source),
            _ => true,
        });
    }
    asked
}

#[test]
fn vendor_responses_in_other_dialects() {
    for (from, name, targets) in RESPONSES {
        beside_inputs(*from, || {
            for to in *targets {
                let converted = response_into(*to, &response(*from, name));
                insta::assert_json_snapshot!(format!("{name}.response.{to}"), converted);
            }
        });
    }
}

/// Every canonical document in every dialect.
#[test]
fn canonical_documents_in_all_dialects() {
    let shown = |target, ledger: &Ledger| {
        let entries = ledger.entries().iter();
        let line = entries.map(|entry| format!("{} {:?}: {}", entry.pointer, entry.action, entry.reason));
        json!({"document": target, "adaptations": line.collect::<Vec<_>>()})
    };
    beside_inputs(Dialect::Canonical, || {
        for (name, body) in fixtures(Dialect::Canonical, ".request.json") {
            let request = document::decode_request(Dialect::Canonical, body).unwrap();
            for to in chat::DIALECTS {
                let mut ledger = Ledger::new(Component::Adapter);
                let target = document::encode_request(*to, &request, &mut ledger).unwrap();
                insta::assert_json_snapshot!(format!("{name}.request.{to}"), shown(target, &ledger));
            }
        }
        for (name, body) in fixtures(Dialect::Canonical, ".response.json") {
            let response = document::decode_response(Dialect::Canonical, body).unwrap();
            for to in chat::DIALECTS {
                let mut ledger = Ledger::new(Component::Adapter);
                let target = document::encode_response(*to, &response, &mut ledger).unwrap();
                insta::assert_json_snapshot!(format!("{name}.response.{to}"), shown(target, &ledger));
            }
        }
    });
}
