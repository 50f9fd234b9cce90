//! Examples of the specification v2.5: fenced blocks, in document order.

use module::document::parse_yaml;
use module::envelope::{CheckOptions, Profile, check_reply, check_structure};
use module::manifest::{EnumStrategy, ResponseMode, Strictness, Tier};
use module::schema::{Contract, Section};
use module::stream::check_chunk;
use module::{FileMap, Format, Manifest, load, media};
use serde_json::{Value, json};

use super::{drop_comments, json_value, json_values, merge, restore_elisions};

const TEXT: &str = include_str!("../../fixtures/documents/specification-v2.5.zh.md");

/// The kind of a block, which determines its check.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Not data: a folder listing, prose, a prompt, another language.
    Prose,
    /// A whole module.yaml.
    Manifest,
    /// Keys to add to a module.yaml.
    ManifestKeys,
    /// The defaults that follow from a tier.
    TierDefaults,
    /// A whole schema.json.
    Schema,
    Envelope,
    /// A fragment of an envelope, which becomes a valid envelope when this is merged into it.
    EnvelopeFragment(&'static str),
    /// Chunks, one or several.
    Chunks,
    /// Server-sent events whose data are chunks, cut short by `{...}`.
    Events,
    MediaInput,
    /// A media input in a form that the specification's own schema does not define yet.
    UploadReference,
    MediaOutput,
    /// An input of the image analyser.
    Input,
    /// The body of an execute request: `input` and this key.
    Request(&'static str),
    /// A request line with headers and an optional JSON body.
    Http,
    /// `meta` alone, while streaming and at the end.
    Metas,
    /// Any other object, known by this key.
    Object(&'static str),
}

use Kind::{
    Chunks, EnvelopeFragment, Events, Http, Input, ManifestKeys, MediaInput, MediaOutput, Metas, Object,
    Prose, Request, Schema, TierDefaults, UploadReference,
};

/// The fence's language and the kind, by position.
const BLOCKS: &[(&str, Kind)] = &[
    /* 0: 2.1 */ ("", Prose),
    /* 1: 2.2 */ ("yaml", Kind::Manifest),
    /* 2: 2.3 */ ("json", Schema),
    /* 3: 3.1 */ ("json", Kind::Envelope),
    /* 4: 3.2.2 */ ("json", Chunks),
    /* 5 */ ("json", Chunks),
    /* 6 */ ("json", Chunks),
    /* 7 */ ("json", Chunks),
    /* 8 */ ("json", Chunks),
    /* 9: 3.2.4 */ ("", Events),
    /* 10: 3.2.5.1 */ ("http", Http),
    /* 11 */ ("", Prose),
    /* 12 */ ("json", Request("_options")),
    /* 13: 3.2.5.3 */ ("http", Prose),
    /* 14 */
    (
        "json",
        EnvelopeFragment(
            r#"{"meta":{"confidence":0.9,"risk":"low","explain":"x"},"data":{"rationale":"x"}}"#,
        ),
    ),
    /* 15: 3.2.6.1 */ ("json", Chunks),
    /* 16: 3.2.6.2 */ ("json", Chunks),
    /* 17: 3.2.6.3 */ ("http", Http),
    /* 18 */ ("json", Request("_recovery")),
    /* 19: 3.2.6.4 */ ("json", Chunks),
    /* 20: 3.2.6.5 */ ("", Prose),
    /* 21: 4.2.2 */ ("http", Http),
    /* 22 */ ("json", Object("upload_url")),
    /* 23 */ ("http", Http),
    /* 24 */ ("json", Request("input")),
    /* 25: 4.2.3 */ ("http", Http),
    /* 26 */ ("json", Object("chunk_urls")),
    /* 27 */ ("http", Http),
    /* 28: 4.2.4 */ ("http", Http),
    /* 29: 4.3.1 */ ("json", MediaInput),
    /* 30: 4.3.2 */ ("json", MediaInput),
    /* 31: 4.3.3 */ ("json", MediaInput),
    /* 32: 4.3.4 */ ("json", UploadReference),
    /* 33: 4.4.1 */ ("json", MediaOutput),
    /* 34: 4.4.2 */ ("json", MediaOutput),
    /* 35: 4.5.2 */
    (
        "json",
        EnvelopeFragment(r#"{"meta":{"confidence":0.0,"risk":"high","explain":"x"}}"#),
    ),
    /* 36: 4.5.3 */ ("json", Object("validation")),
    /* 37: 4.5.4 */ ("json", Object("validation")),
    /* 38: 4.5.5 */ ("json", MediaInput),
    /* 39: 4.5.6 */ ("json", EnvelopeFragment(r#"{"data":{"rationale":"x"}}"#)),
    /* 40: 4.6 */ ("markdown", Prose),
    /* 41: 4.7, which the document numbers 4.5 again */ ("json", Input),
    /* 42 */ ("json", Chunks),
    /* 43: 5.2 */ ("yaml", TierDefaults),
    /* 44: 6.3 */ ("json", Metas),
    /* 45: 6.4.2 */
    (
        "json",
        EnvelopeFragment(r#"{"ok":true,"data":{"rationale":"x"}}"#),
    ),
    /* 46: 6.4.3 */
    (
        "json",
        EnvelopeFragment(r#"{"ok":true,"data":{"rationale":"x"}}"#),
    ),
    /* 47: 6.4.4 */
    (
        "json",
        EnvelopeFragment(r#"{"ok":true,"data":{"rationale":"x"}}"#),
    ),
    /* 48: 8.1 */ ("json", Object("capabilities")),
    /* 49: 10.1 */ ("yaml", ManifestKeys),
    /* 50 */ ("yaml", ManifestKeys),
    /* 51: 10.2 */ ("python", Prose),
    /* 52: 12.2 */ ("yaml", Kind::Manifest),
    /* 53: 12.3 */ ("yaml", Kind::Manifest),
];

const MANIFEST: usize = 1;
const SCHEMA: usize = 2;
const ANSWER: usize = 3;
const PROMPT: usize = 40;

struct Block {
    language: &'static str,
    text: &'static str,
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut rest = TEXT;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (language, after) = after.split_once('\n').expect("a fence ends its line");
        let (text, after) = after.split_once("\n```").expect("a fence is closed");
        blocks.push(Block { language, text });
        rest = after;
    }
    blocks
}

#[test]
fn every_block_matches_its_row() {
    let blocks = blocks();
    assert_eq!(blocks.len(), BLOCKS.len(), "a block came or went: classify it");
    for (index, (block, (language, kind))) in blocks.iter().zip(BLOCKS).enumerate() {
        assert_eq!(block.language, *language, "block {index}");
        let result = std::panic::catch_unwind(|| check(*kind, block.text));
        assert!(result.is_ok(), "block {index} is no {kind:?}:\n{}", block.text);
    }
}

fn check(kind: Kind, text: &str) {
    match kind {
        Prose => {}
        Kind::Manifest => check_manifest(text),
        ManifestKeys => check_manifest_keys(text),
        TierDefaults => check_tier_defaults(text),
        Schema => check_schema(text),
        Kind::Envelope => assert_envelope(&json_value(text)),
        EnvelopeFragment(completion) => check_fragment(text, completion),
        Chunks => {
            for value in json_values(text) {
                assert_chunk(&value);
            }
        }
        Events => check_events(text),
        MediaInput => {
            let value = whole_media(text);
            assert_eq!(media::check_input(&value), vec![]);
            assert!(fits("/$defs/MediaInput", &value));
        }
        UploadReference => {
            let value = json_value(text);
            assert!(
                !fits("/$defs/MediaInput", &value),
                "the specification's schema has caught up"
            );
            assert_eq!(media::check_input(&value), vec![]);
        }
        MediaOutput => {
            let value = whole_media(text);
            assert_eq!(media::check_output(&value), vec![]);
            assert!(fits("/$defs/MediaOutput", &value));
        }
        Input => {
            let value = json_value(text);
            assert!(fits("/input", &value));
            assert_eq!(media::check_input(&value["images"][0]), vec![]);
        }
        Request(key) => {
            let value = json_value(text);
            assert!(value["input"].is_object() && value[key].is_object());
            let others = value
                .as_object()
                .expect("an object")
                .keys()
                .filter(|key| *key != "input");
            assert!(others.into_iter().all(|key| key.starts_with('_')), "{value}");
        }
        Http => check_http(text),
        Metas => check_metas(text),
        Object(key) => assert!(!json_value(text)[key].is_null()),
    }
}

fn assert_envelope(value: &Value) {
    assert_eq!(check_structure(value, Profile::Cognitive), vec![], "{value}");
}

fn assert_chunk(value: &Value) {
    let found = check_chunk(value);
    assert!(found.is_empty(), "{found:#?} in {value}");
}

fn check_fragment(text: &str, completion: &str) {
    let mut value = json_value(text);
    assert!(
        !check_structure(&value, Profile::Cognitive).is_empty(),
        "this is a whole envelope, not a fragment"
    );
    merge(&mut value, &json_value(completion));
    assert_envelope(&value);
}

fn check_manifest(text: &str) {
    let files: FileMap = [
        ("module.yaml", text),
        ("prompt.md", "$MEDIA_INPUTS"),
        ("schema.json", block(SCHEMA)),
    ]
    .into_iter()
    .collect();
    let loaded = load(&files);
    assert!(!loaded.report.has_errors(), "{:#?}", loaded.report);
    let module = loaded.module.expect("the manifest loads");
    assert_eq!(module.format, Format::V2_5);
    assert_eq!(module.manifest.version, "2.5.0");
    assert!(module.manifest.tier_declared);
    assert!(module.manifest.name.starts_with("image-") || module.manifest.name.starts_with("audio-"));
    let written = parse_yaml(text).expect("YAML");
    assert_eq!(Value::Object(module.source), written, "nothing is lost");
}

/// The keys, added to a minimal module of the previous version, make it one of this version.
fn check_manifest_keys(text: &str) {
    let small = "name: small\nversion: 1.0.0\nresponsibility: be small\ntier: decision\n";
    let before = parse_yaml(small).expect("YAML");
    let after = parse_yaml(&format!("{small}{text}")).expect("YAML");
    let format = |value: &Value| Format::of_manifest(value.as_object().expect("a mapping"));
    assert_eq!((format(&before), format(&after)), (Format::V2_2, Format::V2_5));
}

fn check_tier_defaults(text: &str) {
    let table = parse_yaml(text).expect("YAML");
    for tier in [Tier::Exec, Tier::Decision, Tier::Exploration] {
        let row = &table[tier.as_str()];
        let map = json!({"name": "x", "tier": tier.as_str()});
        let manifest = Manifest::read(map.as_object().expect("a mapping"));
        let strictness = match manifest.strictness {
            Strictness::High => "high",
            Strictness::Medium => "medium",
            Strictness::Low => "low",
        };
        assert_eq!(row["schema_strictness"], strictness);
        assert_eq!(row["overflow.enabled"], manifest.overflow.enabled);
        if let Some(max_items) = row.get("overflow.max_items") {
            assert_eq!(*max_items, manifest.overflow.max_items);
        }
        let strategy = match manifest.enums.strategy {
            EnumStrategy::Strict => "strict",
            EnumStrategy::Extensible => "extensible",
        };
        assert_eq!(row["enums.strategy"], strategy);
        let mode = match manifest.response.mode {
            ResponseMode::Sync => "sync",
            ResponseMode::Both => "both",
            ResponseMode::Streaming => "streaming",
        };
        assert_eq!(row["response.mode"], mode);
    }
}

fn check_schema(text: &str) {
    let document = json_value(text);
    let sections = [Section::Input, Section::Data, Section::Meta, Section::Error];
    let pointers = sections.map(|section| (section, format!("/{}", section.as_str())));
    let contract = Contract::new(document, pointers);
    for section in sections {
        assert!(
            contract.validator(section).expect("it compiles").is_some(),
            "{section:?}"
        );
    }
}

fn check_events(text: &str) {
    let mut names = Vec::new();
    for event in text.split("\n\n") {
        let (name, data) = event.split_once('\n').expect("two lines");
        let name = name.strip_prefix("event: ").expect("a name");
        let mut value = json_value(data.strip_prefix("data: ").expect("data"));
        if value.get("meta").is_some() {
            merge(
                &mut value,
                &json!({"meta": {"confidence": 0.9, "risk": "low", "explain": "x"}}),
            );
        }
        if value.get("final").is_some() {
            merge(&mut value, &json!({"data": {"rationale": "x"}}));
        }
        assert_chunk(&value);
        names.push(name);
    }
    assert_eq!(names, ["meta", "chunk", "chunk", "final"]);
}

/// Restores media with abbreviated base64: removes the dots and cuts to complete groups.
fn whole_media(text: &str) -> Value {
    let mut value = json_value(text);
    if let Some(Value::String(data)) = value.get_mut("data") {
        *data = String::from(data.trim_end_matches('.'));
    }
    value
}

fn check_http(text: &str) {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let request = lines.next().expect("a request line");
    assert!(request.ends_with(" HTTP/1.1"), "{request}");
    assert!(lines.all(|line| line.contains(": ")), "{head}");
    // `<...>` is a placeholder for bytes.
    if !body.is_empty() && !body.starts_with('<') {
        assert!(json_value(body).is_object());
    }
}

fn check_metas(text: &str) {
    let metas = json_values(text);
    let streaming = json!({"ok": true, "streaming": true, "session_id": "sess_1", "meta": metas[0]});
    assert_chunk(&streaming);
    let last = json!({"ok": true, "meta": metas[1], "data": {"rationale": "x"}});
    assert_envelope(&last);
}

/// Whether a value fits a part of the specification's own schema.
fn fits(pointer: &str, value: &Value) -> bool {
    let pointers = [(Section::Input, String::from(pointer))];
    let contract = Contract::new(json_value(block(SCHEMA)), pointers);
    let validator = contract.validator(Section::Input).expect("it compiles");
    validator.expect("it is there").is_valid(value)
}

fn block(index: usize) -> &'static str {
    blocks()[index].text
}

/// Manifest, schema and prompt are three blocks of the document; together they are a module, and the answer
/// in the document satisfies its contract.
#[test]
fn image_analyser_parts_form_a_module() {
    let files: FileMap = [
        ("module.yaml", block(MANIFEST)),
        ("prompt.md", block(PROMPT)),
        ("schema.json", block(SCHEMA)),
    ]
    .into_iter()
    .collect();
    let module = load(&files).module.expect("it loads");
    assert_eq!(module.name(), "image-analyzer");
    assert!(module.prompt.contains("$MEDIA_INPUTS"));
    let shown = json_value(block(ANSWER));
    let envelope = check_reply(&module, block(ANSWER).as_bytes(), &CheckOptions::default()).envelope;
    assert_eq!(envelope.data(), shown["data"].as_object(), "{envelope:#?}");
    let wrong = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "x"}, "data": {"rationale": "x"}}"#;
    let envelope = check_reply(&module, wrong.as_bytes(), &CheckOptions::default()).envelope;
    assert_eq!(envelope.error().map(|error| error.code.as_str()), Some("E3001"));
}

/// The three fragments about confidence pass unchanged and without a warning through a module that takes
/// any data.
#[test]
fn optional_confidence_fields_pass_unchanged() {
    let files: FileMap = [
        ("module.yaml", "name: open\nversion: 1.0.0\nresponsibility: take anything\ntier: decision\nmeta: {risk_rule: explicit}\n"),
        ("prompt.md", "$INPUT"),
        ("schema.json", r#"{"input": {}, "data": {"type": "object", "required": ["rationale"]}}"#),
    ]
    .into_iter()
    .collect();
    let module = load(&files).module.expect("it loads");
    for (index, field) in [
        (45, "generation_quality"),
        (46, "confidence_aggregation"),
        (47, "temporal_confidence"),
    ] {
        let mut shown = json_value(block(index));
        merge(&mut shown, &json!({"ok": true, "data": {"rationale": "x"}}));
        let reply = shown.to_string();
        let value = check_reply(&module, reply.as_bytes(), &CheckOptions::default())
            .envelope
            .into_value();
        assert!(!shown["meta"][field].is_null());
        assert_eq!(value, shown, "block {index}");
    }
}

/// The rules that restore a block change nothing but what they name.
#[test]
fn restoring_changes_elisions_and_comments_only() {
    assert_eq!(
        restore_elisions(r#"{"a": { ... }, "b": [...], "c": "..."}"#),
        r#"{"a": {}, "b": [], "c": "..."}"#
    );
    assert_eq!(
        drop_comments("// first\n{\"url\": \"https://x\"}"),
        "{\"url\": \"https://x\"}"
    );
}
