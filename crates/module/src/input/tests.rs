use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{assign, media_field, put_media};
use crate::file_map::FileMap;
use crate::manifest::Modality;
use crate::module::Module;

fn module(manifest: &str, input: &Value) -> Module {
    let manifest = format!("name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n{manifest}");
    let schema = json!({"input": input, "$defs": {
        "Media": {"type": "object", "oneOf": [
            {"properties": {"type": {"const": "url"}, "url": {"type": "string"}}},
            {"properties": {"type": {"const": "file"}, "path": {"type": "string"}}}
        ]},
        "Count": {"type": "integer"}
    }});
    let files: FileMap = [
        ("module.yaml", manifest),
        ("prompt.md", String::from("p")),
        ("schema.json", schema.to_string()),
    ]
    .into_iter()
    .collect();
    crate::load(&files).module.unwrap()
}

fn typed() -> Module {
    module(
        "",
        &json!({"type": "object", "properties": {
            "text": {"type": "string"},
            "count": {"$ref": "#/$defs/Count"},
            "share": {"type": ["number", "null"]},
            "deep": {"type": "object", "properties": {"on": {"type": "boolean"}}},
            "tags": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "size": {"enum": ["s", 2]},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}
        }}),
    )
}

fn set(module: &Module, words: &[&str]) -> Result<Value, String> {
    let mut input = Map::new();
    for word in words {
        assign(module, &mut input, word).map_err(|error| error.message)?;
    }
    Ok(Value::Object(input))
}

#[test]
fn values_are_parsed_by_schema_type() {
    let module = typed();
    for (words, input) in [
        (&["text=3"][..], json!({"text": "3"})),
        (&["text=a=b"], json!({"text": "a=b"})),
        (&["text=a:=b"], json!({"text": "a:=b"})),
        (&["text="], json!({"text": ""})),
        (&["count=3"], json!({"count": 3})),
        (&["share=0.5"], json!({"share": 0.5})),
        (&["share=null"], json!({"share": null})),
        (&["deep.on=true"], json!({"deep": {"on": true}})),
        (&["tags=a", "tags=b"], json!({"tags": ["a", "b"]})),
        (&["tags=[\"a\"]", "tags=b"], json!({"tags": ["a", "b"]})),
        (
            &["rows.0.n=1", "rows.1.n=2", "rows.0.n=3"],
            json!({"rows": [{"n": 3}, {"n": 2}]}),
        ),
        (&["size=2"], json!({"size": 2})),
        (&["size=s"], json!({"size": "s"})),
        (&["either=7"], json!({"either": "7"})),
        (&["text:={\"a\":[1]}"], json!({"text": {"a": [1]}})),
    ] {
        assert_eq!(set(&module, words), Ok(input), "{words:?}");
    }
    let open = self::module("", &json!({"type": "object"}));
    for (words, input) in [
        (&["unknown.below=7"][..], json!({"unknown": {"below": "7"}})),
        (&["unknown:=7"], json!({"unknown": 7})),
        (&["a\\.b=c"], json!({"a.b": "c"})),
    ] {
        assert_eq!(set(&open, words), Ok(input), "{words:?}");
    }
}

#[test]
fn invalid_assignments_are_refused() {
    let module = typed();
    for words in [
        &["text"][..],
        &["=x"],
        &["a..b=x"],
        &["count=many"],
        &["deep.on=perhaps"],
        &["deep=x"],
        &["text:={"],
        &["rows.1.n=1"],
        &["rows.x=1"],
        &["text=a", "text.b=c"],
    ] {
        assert!(set(&module, words).is_err(), "{words:?}");
    }
}

proptest! {
    #[test]
    fn any_assignments_are_accepted_or_refused(
        words in proptest::collection::vec("[a-z.:=\\\\0-9]{0,12}", 0..6),
    ) {
        let module = typed();
        let mut input = Map::new();
        for word in &words {
            drop(assign(&module, &mut input, word));
        }
    }

    /// A value assigned as JSON is stored unchanged.
    #[test]
    fn json_values_are_stored_unchanged(number in any::<i64>(), text in ".*") {
        let module = typed();
        let mut input = Map::new();
        let value = json!({"n": number, "t": text});
        assign(&module, &mut input, &format!("deep.on:={value}")).unwrap();
        prop_assert_eq!(&input["deep"]["on"], &value);
    }
}

#[test]
fn media_is_put_into_matching_field() {
    let media = json!({"$ref": "#/$defs/Media"});
    let list = json!({"type": "array", "items": media});
    let manifest = "modalities: {input: [text, image, audio, document]}\n";
    let two = module(
        manifest,
        &json!({"type": "object", "properties": {"note": {"type": "string"}, "images": list, "audio": media}}),
    );
    let images = media_field(&two, Modality::Image).unwrap();
    assert_eq!((images.name.as_str(), images.many), ("images", true));
    let audio = media_field(&two, Modality::Audio).unwrap();
    assert_eq!((audio.name.as_str(), audio.many), ("audio", false));
    assert!(
        media_field(&two, Modality::Video)
            .unwrap_err()
            .contains("no video")
    );
    assert!(
        media_field(&two, Modality::Document)
            .unwrap_err()
            .contains("images, audio")
    );

    let one = module(
        manifest,
        &json!({"type": "object", "properties": {"attachments": list}}),
    );
    assert_eq!(media_field(&one, Modality::Document).unwrap().name, "attachments");
    let none = module(manifest, &json!({"type": "object"}));
    assert!(
        media_field(&none, Modality::Image)
            .unwrap_err()
            .contains("no field")
    );

    let mut input = Map::new();
    put_media(&mut input, &images, json!(1)).unwrap();
    put_media(&mut input, &images, json!(2)).unwrap();
    put_media(&mut input, &audio, json!(3)).unwrap();
    assert!(put_media(&mut input, &audio, json!(4)).is_err());
    assert_eq!(Value::Object(input), json!({"images": [1, 2], "audio": 3}));
}

#[test]
fn unknown_field_is_refused_with_a_suggestion() {
    let module = typed();
    let refusal = |word: &str| {
        let mut input = Map::new();
        let error = assign(&module, &mut input, word).unwrap_err();
        assert!(input.is_empty(), "{input:?}");
        (error.message, error.hint.unwrap_or_default())
    };
    let (message, hint) = refusal("cuont=3");
    assert!(message.contains("`cuont`"), "{message}");
    assert_eq!(hint, "did you mean `count`?");
    let (message, hint) = refusal("deep.onn:=true");
    assert!(message.contains("`onn`"), "{message}");
    assert_eq!(hint, "did you mean `on`?");
    let (_, hint) = refusal("nothing_like_it=1");
    assert!(hint.contains("text, count, share"), "{hint}");
    refusal("rows.0.m=1");
    for allowed in ["_context:={}", "$ARGUMENTS=free", "rows.0.n=1"] {
        assign(&module, &mut Map::new(), allowed).unwrap();
    }
    for open in [
        json!({"properties": {"a": {}}, "additionalProperties": true}),
        json!({"type": "object"}),
    ] {
        assign(&self::module("", &open), &mut Map::new(), "other=1").unwrap();
    }
}
