//! Answers under a schema match the schema.

use ir::FinishReason;
use module::envelope::{CheckOptions, check_reply};
use module::lower::{LowerOptions, lower};
use serde_json::{Map, Value, json};

use crate::harness::{ask, chat, held_to, small};

fn valid(schema: &Value, text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(
        jsonschema::draft7::is_valid(schema, &document),
        "{document} does not fit {schema}"
    );
    document
}

#[test]
fn answer_matches_schema() {
    let schemas = [
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 120}}, "required": ["name", "age"], "additionalProperties": false}),
        json!({"type": "object", "properties": {"tags": {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 2, "maxItems": 3}}, "required": ["tags"]}),
        json!({"anyOf": [{"const": "yes"}, {"type": "object", "properties": {"why": {"type": "string", "maxLength": 10}}, "required": ["why"]}]}),
        json!({"type": "object", "properties": {"code": {"type": "string", "pattern": "^E[1-9][0-9]{3}$"}, "open": {"type": ["boolean", "null"]}}, "required": ["code", "open"]}),
        json!({"type": "object", "$defs": {"n": {"type": "number", "minimum": 0, "maximum": 1}}, "properties": {"x": {"$ref": "#/$defs/n"}, "y": {"$ref": "#/$defs/n"}}, "required": ["x", "y"]}),
    ];
    for schema in schemas {
        let mut request = held_to(
            chat("Tell me about Anna, who is 31 and likes red."),
            schema.clone(),
        );
        request.generation.max_tokens = Some(120);
        let answer = ask(&small(), request);
        assert!(answer.error.is_none() && answer.warnings.is_empty(), "{answer:?}");
        valid(&schema, &answer.text);
    }
}

#[test]
fn endless_answer_is_closed_with_warning() {
    let schema = json!({
        "type": "object",
        "properties": {"story": {"type": "string"}, "more": {"type": "array", "items": {"type": "string"}}, "end": {"type": "boolean"}},
        "required": ["story", "more", "end"]
    });
    let mut request = held_to(chat("Write the longest story that you can."), schema.clone());
    request.generation.max_tokens = Some(60);
    let answer = ask(&small(), request);
    valid(&schema, &answer.text);
    assert_eq!(answer.finish, Some(FinishReason::Length), "{answer:?}");
    assert!(
        answer
            .warnings
            .iter()
            .any(|warning| warning.message.contains("token limit")),
        "{answer:?}"
    );
    let written = answer.usage.and_then(|usage| usage.output_tokens);
    assert!(written.is_some_and(|tokens| tokens <= 60), "{written:?}");
}

#[test]
fn unsupported_keyword_is_reported_and_rest_enforced() {
    let schema = json!({
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 2, "uniqueItems": true}},
        "required": ["tags"]
    });
    let answer = ask(&small(), held_to(chat("Give tags."), schema));
    assert!(answer.error.is_none(), "{answer:?}");
    let [warning] = answer.warnings.as_slice() else {
        panic!("{answer:?}");
    };
    assert_eq!(warning.code, "adapted");
    assert!(warning.message.contains("uniqueItems"), "{warning:?}");
    let without = json!({"type": "object", "properties": {"tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1}}, "required": ["tags"]});
    valid(&without, &answer.text);
}

#[test]
fn unsatisfiable_schema_is_dropped_with_warning() {
    let schema = json!({"type": "object", "properties": {"a": false}, "required": ["a"]});
    let answer = ask(&small(), held_to(chat("Hello."), schema));
    assert!(answer.error.is_none(), "{answer:?}");
    assert!(
        answer
            .warnings
            .iter()
            .any(|warning| warning.message.contains("not enforced")),
        "{answer:?}"
    );
}

/// For every example with text input, the answer satisfies the module's contract.
#[test]
fn example_modules_get_answers_that_match_their_contract() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/modules");
    let mut tried = Vec::new();
    for entry in std::fs::read_dir(examples).expect("examples") {
        let folder = entry.expect("an entry").path();
        let module = module::load(&files(&folder)).module.expect("a whole module");
        let input = input_of(&folder);
        // Modules with media input are not supported by an embedded text model.
        let schema = std::fs::read_to_string(folder.join("schema.json")).unwrap_or_default();
        let Some(input) = input.filter(|_| !schema.contains("media_type")) else {
            continue;
        };
        let Value::Object(input) = input else { continue };
        let request = lower(
            &module,
            &input,
            &LowerOptions {
                request_id: String::from("r"),
                ..LowerOptions::default()
            },
        );
        let Some(mut chat) = request.as_chat().cloned() else {
            continue;
        };
        chat.generation.max_tokens = Some(240);
        let answer = ask(&small(), chat);
        if answer
            .error
            .as_ref()
            .is_some_and(|error| error.kind == ir::ErrorKind::ContextWindow)
        {
            continue;
        }
        assert!(answer.error.is_none(), "{}: {answer:?}", module.name());
        let outcome = check_reply(&module, answer.text.as_bytes(), &CheckOptions::default());
        let structural = ["E1000", "E3001"];
        let code = outcome.envelope.error().map(|error| error.code.clone());
        assert!(
            code.as_deref().is_none_or(|code| !structural.contains(&code)),
            "{}: {code:?} {}",
            module.name(),
            answer.text
        );
        tried.push((String::from(module.name()), outcome.envelope.is_ok()));
    }
    assert!(tried.len() >= 5, "{tried:?}");
    assert!(tried.iter().any(|(_, good)| *good), "{tried:?}");
}

fn files(folder: &std::path::Path) -> module::FileMap {
    let mut files = module::FileMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .expect("inside")
                    .to_string_lossy()
                    .into_owned();
                let bytes = std::fs::read(&path).expect("a file");
                files.insert(name, module::file_map::Entry::Read(bytes));
            }
        }
    }
    files
}

/// The first golden input.
fn input_of(folder: &std::path::Path) -> Option<Value> {
    let mut inputs: Vec<_> = std::fs::read_dir(folder.join("tests"))
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(".input.json"))
        .collect();
    inputs.sort();
    let text = std::fs::read(inputs.first()?).ok()?;
    serde_json::from_slice::<Map<String, Value>>(&text)
        .ok()
        .map(Value::Object)
}
