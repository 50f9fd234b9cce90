//! Chunk sequences folded into envelopes: valid streams, and every kind of violation.

use module::Code;
use module::envelope::{Envelope, EnvelopeBody, ErrorBody, Meta, Risk};
use module::stream::{Assembled, Assembler, Chunk, assemble_ndjson, field};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn meta() -> Value {
    json!({"ok": true, "streaming": true, "session_id": "s", "meta": {"confidence": null, "risk": "low", "explain": ""}})
}

fn resumed(seq: u64) -> Value {
    let mut value = meta();
    value["resumed"] = json!(true);
    value["resume_from_seq"] = json!(seq);
    value
}

fn delta(seq: u64, field: &str, text: &str) -> Value {
    json!({"chunk": {"seq": seq, "type": "delta", "field": field, "delta": text}})
}

fn snapshot(seq: u64, field: &str, data: impl Into<Value>) -> Value {
    json!({"chunk": {"seq": seq, "type": "snapshot", "field": field, "data": data.into()}})
}

fn last(data: impl Into<Value>) -> Value {
    json!({"final": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": data.into()})
}

fn assemble(chunks: &[Value]) -> Assembled {
    let mut text = String::new();
    for chunk in chunks {
        text.push_str(&chunk.to_string());
        text.push('\n');
    }
    assemble_ndjson(text.as_bytes())
}

fn codes(assembled: &Assembled) -> Vec<Code> {
    assembled
        .violations
        .iter()
        .map(|violation| violation.code)
        .collect()
}

/// Folds a stream without a terminal event: checks its partial data and the codes of its violations.
#[track_caller]
fn check(chunks: &[Value], data: &Value, expected: &[Code]) {
    let assembled = assemble(chunks);
    assert_eq!(codes(&assembled), expected, "{:?}", assembled.violations);
    assert_eq!(assembled.envelope["partial_data"].to_string(), data.to_string());
    assert_eq!(assembled.envelope["error"]["code"], "E2010");
}

#[test]
fn chunks_fold_to_final_data() {
    let data = json!({"text": "ab", "n": {"list": [1, {"k": "v"}]}, "a.b": "x"});
    let mut end = last(data.clone());
    end["usage"] = json!({"input_tokens": 1});
    end["_warnings"] = json!(["w"]);
    let assembled = assemble(&[
        meta(),
        delta(1, "data.text", "a"),
        json!({"progress": {"percent": 10}}),
        delta(2, "data.text", "b"),
        snapshot(3, "data.n.list[0]", json!(1)),
        delta(4, "data.n.list[1].k", "v"),
        delta(5, "data[\"a.b\"]", "x"),
        end,
    ]);
    assert_eq!(assembled.violations, []);
    assert!(assembled.is_ok() && assembled.ended);
    assert_eq!(assembled.last_seq, 5);
    let expected = json!({"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": data,
        "_usage": {"input_tokens": 1}, "_warnings": ["w"]});
    assert_eq!(assembled.envelope.to_string(), expected.to_string());
}

#[test]
fn final_data_wins_and_difference_is_a_warning() {
    let assembled = assemble(&[meta(), delta(1, "data.a", "x"), last(json!({"a": "y"}))]);
    assert_eq!(assembled.envelope["data"], json!({"a": "y"}));
    assert_eq!(codes(&assembled), [Code::E3006]);
    assert_eq!(assembled.violations[0].severity, module::Severity::Warning);
    assert_eq!(assembled.violations[0].pointer, "/data/a");
}

#[test]
fn snapshots_replace_current_value() {
    let chunks = [
        meta(),
        delta(1, "data.a", "x"),
        snapshot(2, "data.a", json!({})),
        snapshot(3, "data.b", json!(1)),
        snapshot(4, "data.a", json!("long")),
        delta(5, "data.a", "er"),
    ];
    check(&chunks, &json!({"a": "longer", "b": 1}), &[]);
    let all = [
        meta(),
        delta(1, "data.a", "x"),
        snapshot(2, "data", json!({"c": 1})),
    ];
    check(&all, &json!({"c": 1}), &[]);
}

#[test]
fn truncated_stream_reports_resume_point() {
    let mut chunk = delta(1, "data.a", "x");
    chunk["chunk"]["checkpoint"] = json!({"offset": 1, "hash": "2d7116"});
    let assembled = assemble(&[meta(), chunk]);
    assert!(!assembled.ended);
    let error = &assembled.envelope["error"];
    assert_eq!(error["recoverable"], true);
    assert_eq!(
        error["recovery"],
        json!({"last_seq": 1, "last_checkpoint": {"offset": 1, "hash": "2d7116"},
            "retry_after_ms": 1000, "max_retries": 3})
    );
    let empty = assemble_ndjson(b"");
    assert_eq!(empty.envelope["error"]["recovery"].get("last_seq"), None);
    assert_eq!(empty.envelope.get("partial_data"), None);
}

#[test]
fn broken_sequences_are_reported_without_abort() {
    let gap = [meta(), delta(1, "data.a", "x"), delta(3, "data.a", "z")];
    check(&gap, &json!({"a": "xz"}), &[Code::E2010]);
    let twice = [meta(), delta(1, "data.a", "x"), delta(1, "data.a", "x")];
    check(&twice, &json!({"a": "x"}), &[Code::E3006]);
    let headless = [delta(1, "data.a", "x")];
    check(&headless, &json!({"a": "x"}), &[Code::E3006]);
    let mut bad = delta(1, "data.a", "x");
    bad["chunk"]["checkpoint"] = json!({"offset": 1, "hash": "000000"});
    check(&[meta(), bad], &json!({"a": "x"}), &[Code::E4014]);
    let after = assemble(&[meta(), last(json!({})), delta(1, "data.a", "x")]);
    assert_eq!(codes(&after), [Code::E3006]);
    assert!(after.is_ok());
}

#[test]
fn chunks_that_do_not_apply_change_nothing() {
    let mut chunks = vec![
        meta(),
        snapshot(1, "data.a", json!([1])),
        snapshot(2, "data.n", Value::Null),
    ];
    let fields = [
        "data.a[2]",
        "data.a.b",
        "data.n.x",
        "data[0]",
        "meta.explain",
        "data.",
        "data[01]",
        "data[\"a\"",
    ];
    for (seq, field) in (3..).zip(fields) {
        chunks.push(snapshot(seq, field, json!(0)));
    }
    chunks.push(delta(11, "data.a", "x"));
    chunks.push(delta(12, "data", "x"));
    chunks.push(snapshot(13, "data", json!(0)));
    use Code as C;
    let expected = [
        C::E1006,
        C::E1003,
        C::E1003,
        C::E1003,
        C::E1006,
        C::E1006,
        C::E1006,
        C::E1006,
        C::E1003,
        C::E1003,
        C::E1003,
    ];
    check(&chunks, &json!({"a": [1], "n": null}), &expected);
}

#[test]
fn resumed_stream_may_repeat_identical_chunks() {
    let start = [meta(), delta(1, "data.a", "x"), delta(2, "data.a", "y")];
    let error = json!({"ok": false, "streaming": true, "session_id": "s",
        "error": {"code": "E2010", "message": "cut", "recoverable": true}});
    let with = |more: &[Value]| [&start[..], std::slice::from_ref(&error), more].concat();
    let onward = with(&[resumed(3), delta(3, "data.a", "z")]);
    check(&onward, &json!({"a": "xyz"}), &[]);
    let repeating = with(&[resumed(2), delta(2, "data.a", "y"), delta(3, "data.a", "z")]);
    check(&repeating, &json!({"a": "xyz"}), &[]);
    let other = with(&[resumed(2), delta(2, "data.a", "!"), delta(3, "data.a", "z")]);
    check(&other, &json!({"a": "xyz"}), &[Code::E4014]);
    let anew = with(&[meta(), delta(1, "data.b", "1")]);
    check(&anew, &json!({"b": "1"}), &[]);
    let skipping = with(&[resumed(5), delta(5, "data.a", "z")]);
    check(&skipping, &json!({"a": "xyz"}), &[Code::E2010]);
    let mut another = meta();
    another["session_id"] = json!("t");
    check(
        &with(&[another, delta(1, "data.b", "1")]),
        &json!({"b": "1"}),
        &[],
    );
}

#[test]
fn parses_server_sent_events_and_ndjson() {
    let lines = format!(
        "{}\r\n\r\n{}\n{}",
        meta(),
        delta(1, "data.a", "x"),
        last(json!({"a": "x"}))
    );
    let events = format!(
        "\u{feff}event: meta\ndata: {}\n\n: hb\n\nid: 1\nevent: chunk\ndata: {}\n\nevent: final\ndata:{}",
        meta(),
        serde_json::to_string_pretty(&delta(1, "data.a", "x"))
            .unwrap()
            .replace('\n', "\ndata: "),
        last(json!({"a": "x"}))
    );
    let lines = assemble_ndjson(lines.as_bytes());
    assert_eq!(lines.violations, []);
    assert_eq!(lines, assemble_ndjson(events.as_bytes()));
    let noise = assemble_ndjson(b"{}\nnot json\n\xff\n");
    let places: Vec<_> = noise.violations.iter().map(|v| (v.code, v.line)).collect();
    assert_eq!(
        places,
        [
            (Code::E1002, Some(1)),
            (Code::E1000, Some(2)),
            (Code::E1000, Some(3))
        ]
    );
}

#[test]
fn failure_preserves_code_and_suggestion() {
    let mut error = ErrorBody::new(Code::E2004, "no").detail("why", "because");
    error.code = String::from("E7001");
    error.more.insert(String::from("extra"), json!(1));
    let expected = Envelope {
        meta: Meta::new(0.0, Risk::High, "no"),
        body: EnvelopeBody::Failure {
            error: Box::new(error),
            partial_data: None,
        },
        annotations: Map::new(),
    };
    let chunk = Chunk::ending("s", expected.clone(), None, None);
    let text = serde_json::to_string(&chunk).unwrap();
    assert!(text.contains(r#""code":"E2004""#));
    let assembled = assemble_ndjson(text.as_bytes());
    assert_eq!(assembled.violations, []);
    assert_eq!(assembled.envelope, expected.into_value());
}

#[test]
fn failure_preserves_meta() {
    let mut expected = Envelope::failure(ErrorBody::new(Code::E2004, "no"));
    let plain = serde_json::to_string(&Chunk::ending("s", expected.clone(), None, None)).unwrap();
    assert!(!plain.contains("_meta"), "{plain}");
    expected.meta = Meta::new(0.3, Risk::Medium, "the model's own words");
    expected
        .meta
        .more
        .insert(String::from("model"), json!("scripted/x"));
    let chunk = Chunk::ending("s", expected.clone(), None, None);
    let text = serde_json::to_string(&chunk).unwrap();
    let assembled = assemble_ndjson(text.as_bytes());
    assert_eq!(assembled.violations, []);
    assert_eq!(assembled.envelope, expected.into_value());

    let strange = text.replace("\"risk\":\"medium\"", "\"risk\":7");
    let envelope = assemble_ndjson(strange.as_bytes()).envelope;
    assert_eq!(
        envelope["meta"],
        json!({"confidence": 0.0, "risk": "high", "explain": "no"})
    );
}

proptest! {
    #[test]
    fn field_paths_round_trip(steps in prop::collection::vec(step(), 0..6)) {
        let mut text = String::from("data");
        for step in &steps {
            match step {
                field::PathStep::Key(key) => field::push_key(&mut text, key),
                field::PathStep::Index(index) => field::push_index(&mut text, *index),
            }
        }
        prop_assert_eq!(field::parse(&text), Some(steps), "{}", text);
    }
}

fn step() -> impl Strategy<Value = field::PathStep> {
    prop_oneof![
        "[a-z.\\[\\]\"\\\\ é0-9\\n]{0,4}".prop_map(field::PathStep::Key),
        any::<usize>().prop_map(field::PathStep::Index),
    ]
}

/// Any bytes fold to a valid envelope.
#[test]
fn any_bytes_give_an_envelope() {
    bolero::check!().with_iterations(3_000).for_each(|bytes: &[u8]| {
        let assembled = assemble_ndjson(bytes);
        assert!(assembled.envelope["meta"]["explain"].is_string());
    });
}

#[test]
fn any_chunks_give_an_envelope() {
    let chunk = (0..7u8, 0..5u64, 0..8usize, "[a-c]{0,2}").prop_map(|(kind, seq, place, text)| {
        let fields = [
            "data",
            "data.a",
            "data.a.b",
            "data.b[0]",
            "data.b[1].c",
            "data.",
            "x",
            "data[\"\"]",
        ];
        match kind {
            0 => meta(),
            1 => resumed(seq.max(1)),
            2 | 3 => delta(seq.max(1), fields[place], &text),
            4 => snapshot(seq.max(1), fields[place], json!({"a": text})),
            5 => last(json!({"a": text})),
            _ => json!({"ok": false, "error": {"code": "E2010", "message": text}}),
        }
    });
    proptest!(|(chunks in prop::collection::vec(chunk, 0..12))| {
        let mut assembler = Assembler::new();
        for chunk in &chunks {
            let before = assembler.data().clone();
            let refused = assembler.push(Chunk::from_value(chunk.clone()).unwrap()).is_err();
            // No chunk has a checkpoint, so a rejected chunk has no effect; but a repeated meta chunk
            // discards the data before it.
            let unchanged = *assembler.data() == before || assembler.data().is_empty();
            prop_assert!(!refused || unchanged);
        }
        let assembled = assembler.finish();
        prop_assert_eq!(assembled.envelope["ok"].as_bool(), Some(assembled.is_ok()));
        prop_assert_eq!(assembled, assemble(&chunks).without_lines());
    });
}

trait WithoutLines {
    fn without_lines(self) -> Self;
}

impl WithoutLines for Assembled {
    fn without_lines(mut self) -> Self {
        for violation in &mut self.violations {
            violation.line = None;
        }
        self
    }
}
