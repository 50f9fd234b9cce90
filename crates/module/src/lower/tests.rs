use ir::{Part, Role};
use serde_json::{Map, Value, json};

use super::{
    LowerOptions, admit_input, envelope_schema, input_schema, lower, lower_with_media, output_schema,
};
use crate::compose::Results;
use crate::file_map::FileMap;
use crate::module::Module;

fn module(manifest: &str, prompt: &str, schema: &Value) -> Module {
    let manifest =
        format!("name: m\nversion: 1.0.0\nresponsibility: count things\ntier: decision\n{manifest}");
    let files: FileMap = [
        ("module.yaml", manifest),
        ("prompt.md", String::from(prompt)),
        ("schema.json", schema.to_string()),
    ]
    .into_iter()
    .collect();
    crate::load(&files).module.unwrap()
}

fn texts(module: &Module, input: &Value) -> Vec<(Role, String)> {
    let options = LowerOptions {
        request_id: String::from("r"),
        ..LowerOptions::default()
    };
    let request = lower(module, input.as_object().unwrap(), &options);
    let messages = request.as_chat().unwrap().messages.iter().map(|message| {
        let parts = message.parts.iter().filter_map(Part::as_text);
        (message.role, parts.collect())
    });
    messages.collect()
}

#[test]
fn lists_excludes_missing_from_the_prompt() {
    let module = module(
        "excludes: [guessing, inventing names]\n",
        "No guessing.",
        &json!({}),
    );
    let (_, system) = &texts(&module, &json!({}))[0];
    assert!(system.contains("- inventing names\n"), "{system}");
    assert!(!system.contains("- guessing"), "{system}");
}

#[test]
fn renders_input_once() {
    let shown = module("", "Count: $INPUT", &json!({}));
    let hidden = module("", "Count.", &json!({}));
    for module in [shown, hidden] {
        let (role, user) = &texts(&module, &json!({"word": "needle"}))[1];
        assert_eq!(*role, Role::User);
        assert_eq!(user.matches("needle").count(), 1, "{user}");
    }
}

#[test]
fn removes_media_placeholder_from_text() {
    let module = module("", "Look at $MEDIA_INPUTS closely", &json!({}));
    for (_, text) in texts(&module, &json!({})) {
        assert!(!text.contains("MEDIA_INPUTS"), "{text}");
    }
}

#[test]
fn output_schema_is_self_contained() {
    let schema = json!({
        "data": {
            "type": "object",
            "required": ["rationale", "tree"],
            "properties": {
                "rationale": {"type": "string"},
                "tree": {"$ref": "#/$defs/tree"},
                "copy": {"$ref": "#/data/properties/rationale"}
            }
        },
        "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}
    });
    let validator = jsonschema::validator_for(&output_schema(&module("", "", &schema))).unwrap();
    let answer = |data: Value| json!({"ok": true, "meta": {"confidence": 1, "risk": "none", "explain": "e"}, "data": data});
    assert!(validator.is_valid(&answer(
        json!({"rationale": "r", "tree": [[], [[]]], "copy": "c"})
    )));
    assert!(!validator.is_valid(&answer(json!({"rationale": "r", "tree": [1]}))));
    assert!(!validator.is_valid(&answer(json!({"rationale": "r", "tree": [], "copy": 1}))));
}

#[test]
fn reports_specific_code_for_invalid_input() {
    let schema = json!({"input": {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string"}, "size": {"enum": ["s", "l"]}, "n": {"minimum": 1}},
        "additionalProperties": false
    }});
    let module = module("", "", &schema);
    for (input, code) in [
        (json!({}), "E1002"),
        (json!({"text": 1}), "E1003"),
        (json!({"text": "t", "size": "m"}), "E1001"),
        (json!({"text": "t", "n": 0}), "E1001"),
        (json!("text"), "E1001"),
    ] {
        let error = admit_input(&module, input.clone()).unwrap_err();
        assert_eq!(error.code, code, "{input}: {}", error.message);
    }
    let given = json!({"text": "t", "_context": {}});
    assert_eq!(
        Value::Object(admit_input(&module, given.clone()).unwrap().input),
        given
    );
}

/// The input that a run gets for free text and other fields.
fn admitted(module: &Module, input: Value) -> Result<Value, (String, Value)> {
    let admitted = admit_input(module, input);
    admitted
        .map(|admitted| Value::Object(admitted.input))
        .map_err(|error| (error.code, Value::Object(error.details.unwrap_or_default())))
}

fn with_input(prompt: &str, input: &Value) -> Module {
    match input {
        Value::Null => module("", prompt, &json!({"data": {}})),
        input => module("", prompt, &json!({"input": input, "data": {}})),
    }
}

#[test]
fn free_text_fills_arguments_or_the_only_required_text_field() {
    let text = |fields: &[&str], required: &[&str]| {
        let properties: Map<String, Value> = fields
            .iter()
            .map(|name| (String::from(*name), json!({"type": "string"})))
            .collect();
        json!({"type": "object", "required": required, "properties": properties})
    };
    let free = || json!({"$ARGUMENTS": "free"});
    let one = text(&["text", "tone"], &["text"]);
    for (prompt, schema, input) in [
        ("Read ${text}, ${tone}", &one, json!({"text": "free"})),
        ("Read $INPUT", &one, json!({"text": "free"})),
        ("Read", &one, json!({"text": "free"})),
        ("Read $ARGUMENTS", &text(&["tone"], &[]), free()),
        ("Read $0", &text(&[], &[]), free()),
        ("Read", &text(&[], &[]), json!({"query": "free"})),
        ("Read", &Value::Null, json!({"query": "free"})),
        // `$ARGUMENTS` reads these names too.
        (
            "Read $ARGUMENTS",
            &text(&["code"], &["code"]),
            json!({"$ARGUMENTS": "free", "code": "free"}),
        ),
        (
            "Call @call:other($ARGUMENTS) ${tone}",
            &text(&["tone"], &[]),
            free(),
        ),
    ] {
        let module = with_input(prompt, schema);
        assert_eq!(admitted(&module, free()), Ok(input), "{prompt}");
    }
    let module = with_input("${text}", &one);
    let given = json!({"$ARGUMENTS": "free", "tone": "dry"});
    let (code, details) = admitted(
        &with_input("${text} ${tone}", &text(&["text", "tone"], &["text", "tone"])),
        free(),
    )
    .unwrap_err();
    assert_eq!(
        (code.as_str(), &details["fields"]),
        ("E1002", &json!(["text", "tone"]))
    );
    assert_eq!(
        admitted(&module, given),
        Ok(json!({"tone": "dry", "text": "free"}))
    );
    let (code, details) = admitted(&with_input("${tone}", &text(&["tone"], &[])), free()).unwrap_err();
    assert_eq!((code.as_str(), &details["fields"]), ("E1002", &json!(["tone"])));
    let (code, _) = admitted(&module, json!({"$ARGUMENTS": "free", "text": "given"})).unwrap_err();
    assert_eq!(code, "E1002");
}

#[test]
fn input_with_free_text_is_validated() {
    let schema = json!({"type": "object", "required": ["language"], "properties": {"language": {"enum": ["de", "fr"]}}});
    let module = with_input("Translate $ARGUMENTS into ${language}.", &schema);
    let (code, _) = admitted(&module, json!({"$ARGUMENTS": "free"})).unwrap_err();
    assert_eq!(code, "E1002");
    let (code, _) = admitted(&module, json!({"$ARGUMENTS": "free", "language": "xx"})).unwrap_err();
    assert_eq!(code, "E1001");
    let complete = json!({"language": "de", "$ARGUMENTS": "free"});
    assert_eq!(admitted(&module, complete.clone()), Ok(complete));
}

#[test]
fn fields_that_reach_no_request_are_reported() {
    let schema = json!({"type": "object", "required": ["text"], "properties": {
        "text": {"type": "string"}, "tone": {"type": "string"}, "kind": {"const": "letter"}
    }});
    let full = json!({"text": "t", "tone": "dry", "kind": "letter", "more": 1});
    let unused = |prompt: &str| {
        admit_input(&with_input(prompt, &schema), full.clone()).map(|admitted| admitted.unused)
    };
    for (prompt, expected) in [
        ("Read.", &[][..]),
        ("Read $INPUT ${tone}", &[]),
        ("Read ${text} ${tone}", &["more"]),
        ("Read ${text}", &["tone", "more"]),
        ("Read ${tone} ${more} @call:other(${text})", &[]),
        ("Read ${tone} ${more} @call:other({\"a\": \"$.text\"})", &[]),
        ("Read ${tone} ${more} @call:other($.input.text)", &[]),
        ("Read ${tone} @call:other", &[]),
    ] {
        assert_eq!(unused(prompt).unwrap(), expected, "{prompt}");
    }
    let error = unused("Read ${tone}").unwrap_err();
    assert_eq!(error.code, "E1002");
    assert_eq!(error.details.unwrap()["unused"], json!(["text"]));
    let condition = module(
        "composition:\n  pattern: conditional\n  requires: [{name: other}, {name: more}]\n  dataflow:\n    - {from: [other], to: [more], condition: \"$.text == 'x'\"}\n",
        "Read ${tone} ${more}",
        &json!({"input": schema, "data": {}}),
    );
    assert!(admit_input(&condition, full).unwrap().unused.is_empty());
}

#[test]
fn sets_model_only_when_given() {
    let module = module("", "", &json!({}));
    for model in [None, Some(String::from("large"))] {
        let options = LowerOptions {
            request_id: String::from("r"),
            model: model.clone(),
            ..LowerOptions::default()
        };
        let request = lower(&module, &Map::new(), &options);
        assert_eq!(request.model(), model.as_deref());
    }
}

#[test]
fn places_media_at_placeholder_or_after_prompt() {
    use ir::PartBody;
    use ir::media::{Base64, Media, MediaSource};
    let picture = |byte: u8| {
        let data = Base64::from_bytes(&[byte]);
        Media::new(MediaSource::Inline(data), Some(String::from("image/png")))
    };
    for (prompt, places) in [
        ("Look at $MEDIA_INPUTS closely, $MEDIA_INPUTS", [1, 2]),
        ("$MEDIA_INPUTS", [0, 1]),
        ("Look", [1, 2]),
    ] {
        let module = module("", prompt, &json!({}));
        let options = LowerOptions {
            request_id: String::from("r"),
            ..LowerOptions::default()
        };
        let media = vec![picture(1), picture(2)];
        let request = lower_with_media(&module, &Map::new(), &Results::default(), media.clone(), &options);
        let parts = &request.as_chat().unwrap().messages[1].parts;
        let found = parts
            .iter()
            .enumerate()
            .filter_map(|(place, part)| match &part.body {
                PartBody::Media(media) => Some((place, (**media).clone())),
                _ => None,
            });
        let found: Vec<_> = found.collect();
        assert_eq!(
            found,
            places.into_iter().zip(media).collect::<Vec<_>>(),
            "{prompt}"
        );
    }
}

#[test]
fn preferred_capabilities_are_not_required_features() {
    let module = module(
        "runtime_requirements: {structured_output: false, preferred_capabilities: [vision, long_context, json_mode, function_calling]}\n",
        "p",
        &json!({}),
    );
    let request = lower(&module, &Map::new(), &LowerOptions::default());
    let needs = request.needs();
    let words: Vec<&str> = needs.preferred_features.iter().map(|one| one.as_str()).collect();
    assert_eq!(
        words,
        [
            "supports_tools",
            "supports_json_schema",
            "supports_image_input",
            "supports_long_context"
        ]
    );
    assert!(needs.required_features.is_disjoint(&needs.preferred_features));
}

#[test]
fn published_schemas_are_self_contained_and_accept_valid_answers() {
    let accepts = |schema: &Map<String, Value>, value: &Value| {
        let schema = Value::Object(schema.clone());
        jsonschema::validator_for(&schema).unwrap().is_valid(value)
    };
    let data = json!({
        "type": "object",
        "required": ["rationale", "x"],
        "properties": {
            "rationale": {"$ref": "#/$defs/word"},
            "x": {"type": "integer", "x-cognitive-optional": true},
            "again": {"$ref": "#/data/properties/rationale"}
        }
    });
    let schema = json!({
        "$defs": {"word": {"type": "string"}},
        "input": {"properties": {"a": {"$ref": "#/$defs/word"}, "b": {"$ref": "#/input/properties/a"}}},
        "data": data
    });
    let module = module("strictness: low\n", "", &schema);
    let input = input_schema(&module);
    assert_eq!(input["type"], "object");
    assert!(accepts(&input, &json!({"a": "x", "b": "y"})));
    assert!(!accepts(&input, &json!({"b": 1})));
    let envelope = envelope_schema(&module);
    let meta = json!({"confidence": 0.9, "risk": "low", "explain": "e"});
    let good = |data: Value| json!({"ok": true, "meta": meta, "data": data, "_usage": {}});
    assert!(
        accepts(&envelope, &good(json!({"rationale": "r", "again": "s"}))),
        "x is optional"
    );
    assert!(!accepts(&envelope, &good(json!({"rationale": "r", "again": 1}))));
    let bad =
        json!({"ok": false, "meta": meta, "error": {"code": "E1001", "message": "m"}, "partial_data": {}});
    assert!(accepts(&envelope, &bad));
    assert!(!accepts(&envelope, &json!({"ok": false, "meta": meta})));
    // Many schema readers do not support a bare `false`.
    assert_eq!(
        envelope["then"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["required"]
    );
}

#[test]
fn publishes_plain_object_for_section_with_external_reference() {
    let schema = json!({
        "input": {"type": "object", "properties": {"a": {"$ref": "#/data/properties/rationale"}}},
        "data": {
            "type": "object",
            "required": ["rationale"],
            "properties": {"rationale": {"type": "string"}, "b": {"$ref": "#/input"}}
        }
    });
    let module = module("", "", &schema);
    let text = Value::Object(input_schema(&module)).to_string();
    assert!(!text.contains("$ref"), "{text}");
    let envelope = envelope_schema(&module);
    assert_eq!(envelope["properties"]["data"], json!({"type": "object"}));
}

#[test]
fn prompts_have_the_definitions_of_their_schema() {
    let schema = json!({
        "data": {"type": "object", "properties": {"tree": {"$ref": "#/$defs/tree"}, "top": {"$ref": "#/data/properties/tree"}}},
        "$defs": {
            "tree": {"type": "array", "items": {"$ref": "#/$defs/leaf"}},
            "leaf": {"type": "string", "description": "a leaf"},
            "unused": {"description": "in no answer"}
        }
    });
    let module = module("", "Grow: $SCHEMA", &schema);
    for (_, text) in texts(&module, &json!({})) {
        let start = text.find('{').unwrap();
        let shown: Value = serde_json::from_str(text.get(start..).unwrap()).unwrap();
        assert_eq!(shown["$defs"]["leaf"]["description"], "a leaf", "{text}");
        assert_eq!(shown["properties"]["top"]["$ref"], "#/properties/tree");
        assert!(
            jsonschema::validator_for(&shown)
                .unwrap()
                .is_valid(&json!({"tree": ["l"], "top": []}))
        );
        assert!(shown["$defs"].get("unused").is_none(), "{text}");
    }
}

#[test]
fn generation_settings_of_a_run_precede_those_of_the_module() {
    let module = module(
        "generation: {max_output_tokens: 300, temperature: 0.2, stop: [END]}\n",
        "",
        &json!({}),
    );
    let sent = |own: Value| {
        let options = LowerOptions {
            generation: serde_json::from_value(own).unwrap(),
            default_output_tokens: Some(9),
            ..LowerOptions::default()
        };
        let request = lower(&module, &Map::new(), &options);
        let generation = &request.as_chat().unwrap().generation;
        json!([
            generation.max_tokens,
            generation.temperature,
            generation.top_p,
            generation.stop
        ])
    };
    assert_eq!(sent(json!({})), json!([300, 0.2, null, ["END"]]));
    let own = json!({"max_output_tokens": 5, "temperature": 1, "top_p": 0.9, "stop": []});
    assert_eq!(sent(own), json!([5, 1, 0.9, ["END"]]));
    let plain = self::module("", "", &json!({}));
    let options = LowerOptions {
        default_output_tokens: Some(9),
        ..LowerOptions::default()
    };
    let request = lower(&plain, &Map::new(), &options);
    assert_eq!(request.as_chat().unwrap().generation.max_tokens, Some(9));
}
