//! Golden tests: beside each input file one snapshot that shows it in every other dialect, with everything that
//! was lost on the way. `gemini/tools.request.snap` is `gemini/tools.request.json` in five dialects.

use std::fs;
use std::path::{Path, PathBuf};

use ir::{Component, Dialect, Event, Ledger};
use serde_json::{Map, Value, json};
use wire::{Decoder, Encoder, chat, document};

use crate::convert::booked;
use crate::fixtures::{fixture_paths, fixtures};

/// Cases that every dialect must have at least.
const REQUESTS_MIN: usize = 12;
const RESPONSES_MIN: usize = 12;
const STREAMS_MIN: usize = 6;

/// Every dialect but the source's own.
fn targets(source: Dialect) -> impl Iterator<Item = Dialect> {
    let all = chat::DIALECTS.iter().copied().chain([Dialect::Canonical]);
    all.filter(move |target| *target != source)
}

/// One entry per target dialect: the document, or the error that refuses it, and the losses.
fn conversions(source: Dialect, encode: impl Fn(Dialect, &mut Ledger) -> Result<Value, ir::Error>) -> Value {
    let convert = |target| {
        let mut ledger = Ledger::new(Component::Adapter);
        let converted = match encode(target, &mut ledger) {
            Ok(body) => json!({"body": body, "booked": booked(&ledger)}),
            Err(error) => json!({"error": error.message}),
        };
        (target.to_string(), converted)
    };
    Value::Object(targets(source).map(convert).collect::<Map<_, _>>())
}

/// Snapshots are in the folder of their input file.
fn beside_inputs(dialect: Dialect, test: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../fixtures/{dialect}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(test);
}

fn requests(source: Dialect) {
    let inputs = fixtures(source, ".request.json");
    assert!(
        inputs.len() >= REQUESTS_MIN,
        "{source}: {} requests",
        inputs.len()
    );
    beside_inputs(source, || {
        for (name, body) in inputs {
            let request = document::decode_request(source, body).unwrap();
            let shown = conversions(source, |target, ledger| {
                document::encode_request(target, &request, ledger)
            });
            insta::assert_json_snapshot!(format!("{name}.request"), shown);
        }
    });
}

/// Responses and error bodies. An error body must be decoded as an error, and a response must not.
fn responses(source: Dialect) {
    let complete = fixtures(source, ".response.json");
    let failed = fixtures(source, ".error.json");
    assert!(
        complete.len() >= RESPONSES_MIN,
        "{source}: {} responses",
        complete.len()
    );
    assert!(!failed.is_empty(), "{source} has no error body");
    beside_inputs(source, || {
        for (kind, inputs) in [("response", complete), ("error", failed)] {
            for (name, body) in inputs {
                let response = document::decode_response(source, body).unwrap();
                let is_error = matches!(response.result, ir::Outcome::Error(_));
                assert_eq!(is_error, kind == "error", "{source}/{name}");
                let shown = conversions(source, |target, ledger| {
                    document::encode_response(target, &response, ledger)
                });
                insta::assert_json_snapshot!(format!("{name}.{kind}"), shown);
            }
        }
    });
}

fn decoded_stream(source: Dialect, path: &Path) -> Vec<Event> {
    let mut decoder = Decoder::new(source).unwrap();
    let mut events = Vec::new();
    decoder.push(&fs::read(path).unwrap(), &mut events);
    decoder.finish(&mut events);
    events
}

/// The stream as text in every other dialect, one after the other.
fn streams(source: Dialect) {
    let paths = fixture_paths(source, ".stream.");
    let is_input = |path: &&PathBuf| {
        path.extension()
            .is_some_and(|end| end == "sse" || end == "ndjson")
    };
    let inputs: Vec<_> = paths.iter().filter(is_input).collect();
    assert!(inputs.len() >= STREAMS_MIN, "{source}: {} streams", inputs.len());
    beside_inputs(source, || {
        for path in inputs {
            let events = decoded_stream(source, path);
            let shown: Vec<String> = targets(source)
                .map(|target| encoded_stream(target, &events))
                .collect();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            insta::assert_snapshot!(name, shown.join("\n"));
        }
    });
}

fn encoded_stream(target: Dialect, events: &[Event]) -> String {
    let mut encoder = Encoder::new(target).unwrap();
    let mut ledger = Ledger::new(Component::Adapter);
    let mut bytes = Vec::new();
    for event in events {
        encoder.push(event, &mut bytes, &mut ledger);
    }
    encoder.finish(&mut bytes);
    let losses: String = booked(&ledger)
        .iter()
        .map(|line| format!("-- {line}\n"))
        .collect();
    format!(
        "== {target}\n{losses}{}",
        String::from_utf8(bytes).unwrap().trim_end()
    )
}

macro_rules! golden {
    ($($name:ident: $dialect:expr,)*) => {
        $(mod $name {
            use ir::Dialect;

            #[test]
            fn requests() {
                super::requests($dialect);
            }

            #[test]
            fn responses() {
                super::responses($dialect);
            }

            #[test]
            fn streams() {
                super::streams($dialect);
            }
        })*
    };
}

golden! {
    openai_chat: Dialect::OpenaiChat,
    openai_responses: Dialect::OpenaiResponses,
    anthropic: Dialect::Anthropic,
    gemini: Dialect::Gemini,
    ollama: Dialect::Ollama,
    canonical: Dialect::Canonical,
}
