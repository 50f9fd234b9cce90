use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;

use super::minimal_input::sample;
use super::png::{Depth, black, png};
use super::response::parse_events;
use super::{Capability, ListedModule, ServerRequest, TestModules, checks, kit};

#[test]
fn check_names_are_unique() {
    let all = checks();
    let names: BTreeSet<&str> = all.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(
        all.iter()
            .all(|check| check.name.contains('.') && !check.rule.is_empty())
    );
}

#[test]
fn parses_events_in_every_framing() {
    let sse = "event: chunk\nid: 1\ndata: {\"chunk\":{\"seq\":1}}\n\n: hb\n\nevent: final\ndata: {\"final\":true}\n\n";
    let ndjson = "{\"chunk\":{\"seq\":1}}\n\n{\"final\":true}\n";
    let frames = "{\"type\":\"event\",\"id\":\"a\",\"event\":{\"chunk\":{\"seq\":1}}}\n\
                  {\"type\":\"event\",\"id\":\"a\",\"event\":{\"final\":true}}\n";
    for text in [sse, ndjson, frames] {
        let events = parse_events(text.as_bytes());
        assert_eq!(events.len(), 2, "{text}");
        assert_eq!((events[0].seq(), events[0].kind()), (Some(1), "chunk"));
        assert!(events[1].is_last());
    }
    let events = parse_events(sse.as_bytes());
    assert_eq!(events[0].id.as_deref(), Some("1"));
    assert_eq!(events[1].id, None, "an id applies to its own event only");
    assert_eq!(
        parse_events(b"data: {\"final\":true}"),
        Vec::new(),
        "an incomplete last line is ignored"
    );
}

#[test]
fn disconnects_after_requested_chunks_or_terminal_event() {
    let ask = ServerRequest::get("/").until(2);
    assert!(!ask.is_enough(b"{\"chunk\":{\"seq\":1}}\n{\"chunk\""));
    assert!(ask.is_enough(b"{\"chunk\":{\"seq\":1}}\n{\"chunk\":{\"seq\":2}}\n"));
    assert!(
        !ServerRequest::get("/").is_enough(b"{\"final\":true}\n"),
        "an HTTP response has an end of its own"
    );
    assert!(ServerRequest::socket(json!({})).is_enough(b"{\"final\":true}\n"));
}

#[test]
fn sample_contains_required_fields_only() {
    let schema = json!({
        "type": "object",
        "required": ["text", "kind", "n", "tags"],
        "properties": {
            "text": {"type": "string", "minLength": 3, "maxLength": 5},
            "kind": {"enum": ["a", "b"]},
            "n": {"type": "integer", "minimum": 7},
            "tags": {"type": "array", "minItems": 2, "items": {"type": "boolean"}},
            "more": {"type": "string"},
        }
    });
    assert_eq!(
        sample(&schema),
        Some(json!({"text": "Two w", "kind": "a", "n": 7, "tags": [true, true]}))
    );
    let guess = json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "string", "pattern": "^a$"}}});
    assert_eq!(sample(&guess), None, "no value is generated for a pattern");
}

#[test]
fn chooses_modules_by_capability() {
    let schema =
        json!({"input": {"type": "object", "required": ["photo"], "properties": {"photo": {"$ref": "#/x"}}}});
    let seeing = json!({"response_mode": "both", "manifest": {"modalities": {"input": ["text", "image"]}}, "schema": schema});
    let plain = json!({"response_mode": "both", "schema": {"input": {"type": "object"}}});
    let quiet = json!({"response_mode": "sync", "schema": {"input": {"type": "object"}}});
    let listed = [("seeing", &seeing), ("plain", &plain), ("quiet", &quiet)];
    let listed = listed.map(|(name, described)| ListedModule::read(name, &[described], None));
    let subjects = TestModules::new(listed.to_vec());
    let chosen = |need| subjects.choose(need).map(|subject| subject.name);
    assert_eq!(chosen(Capability::Both).as_deref(), Some("plain"));
    assert_eq!(chosen(Capability::Sync).as_deref(), Some("quiet"));
    assert_eq!(chosen(Capability::Streaming), None);
    assert_eq!(chosen(Capability::Image).as_deref(), Some("seeing"));
    let input = subjects
        .choose(Capability::Image)
        .unwrap()
        .with_image(json!("other"));
    assert_eq!(input, json!({"photo": "other"}));
}

#[test]
fn png_length_follows_from_its_rows() {
    let picture = png(8_200, 12, Depth::One);
    assert_eq!(&picture[1..4], b"PNG");
    assert!((12_300..12_500).contains(&picture.len()), "{}", picture.len());
    assert!(
        png(1_000, 67, Depth::Eight).len() > 65_536,
        "more than one stored block"
    );
    let many = black(8_200, 8_200).len();
    assert!(
        (50_000..65_536).contains(&many),
        "within the limit of the kit: {many}"
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the kit is compared with its folder")]
fn kit_lists_every_file_of_its_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kit");
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&folder).unwrap().to_str().unwrap();
                found.insert(String::from(name));
            }
        }
    }
    let known: BTreeSet<String> = kit().iter().map(|file| String::from(file.path)).collect();
    assert_eq!(known, found);
}
