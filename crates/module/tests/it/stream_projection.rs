//! The chunks fold to the data for any split of the text, any buffering, pauses and restarts.

use module::manifest::ChunkType;
use module::stream::{Assembler, Chunk, Projector, ProjectorOptions};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::stream_json::{document, string};

fn options(chunk_type: ChunkType, buffer_bytes: usize) -> ProjectorOptions {
    ProjectorOptions {
        chunk_type,
        buffer_bytes,
    }
}

/// Both ends of a stream: each chunk of the projector is folded immediately.
struct Pair {
    projector: Projector,
    assembler: Assembler,
    chunks: Vec<Chunk>,
}

impl Pair {
    fn new(options: ProjectorOptions) -> Self {
        let mut assembler = Assembler::new();
        let meta =
            json!({"ok": true, "streaming": true, "session_id": "s", "meta": {"risk": "low", "explain": ""}});
        assembler.push(Chunk::from_value(meta).unwrap()).unwrap();
        Self {
            projector: Projector::new(options),
            assembler,
            chunks: Vec::new(),
        }
    }

    fn step(&mut self, act: impl FnOnce(&mut Projector, &mut Vec<Chunk>)) -> Result<(), TestCaseError> {
        let mut out = Vec::new();
        act(&mut self.projector, &mut out);
        for chunk in out {
            self.chunks.push(chunk.clone());
            let read = Chunk::from_value(chunk.clone().into_value());
            prop_assert_eq!(read.as_ref(), Ok(&chunk));
            let taken = self.assembler.push(chunk);
            prop_assert_eq!(taken, Ok(()));
        }
        prop_assert_eq!(
            print(self.assembler.data()),
            print(&self.projector.partial_data())
        );
        let last = self.chunks.last();
        prop_assert_eq!(
            self.projector.last_seq(),
            last.and_then(Chunk::seq).unwrap_or_default()
        );
        let checkpoint = match last {
            Some(Chunk::Delta { checkpoint, .. }) => checkpoint.as_ref(),
            _ => None,
        };
        prop_assert_eq!(self.projector.last_checkpoint(), checkpoint);
        Ok(())
    }

    fn write(&mut self, text: &str, cuts: &[(usize, bool)]) -> Result<(), TestCaseError> {
        let mut rest = text;
        for (cut, pause) in cuts {
            let mut at = cut % (rest.len() + 1);
            while !rest.is_char_boundary(at) {
                at += 1;
            }
            let (piece, after) = rest.split_at(at);
            self.step(|projector, out| projector.push_text(piece, out))?;
            if *pause {
                self.step(|projector, out| projector.flush_idle(out))?;
            }
            rest = after;
        }
        self.step(|projector, out| projector.push_text(rest, out))
    }
}

/// As text, because equality ignores the order of keys.
fn print(data: &Map<String, Value>) -> String {
    Value::Object(data.clone()).to_string()
}

/// A model reply, and the data in it.
pub(crate) fn reply() -> impl Strategy<Value = (String, Map<String, Value>)> {
    let key = prop_oneof![2 => Just(String::from("\"a\"")), 1 => Just(String::from("\"b\"")), 3 => string()];
    let object = prop::collection::vec((key, document()), 0..6).prop_map(|pairs| {
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        format!("{{{}}}", pairs.join(", "))
    });
    let frames = prop::sample::select(vec![
        ("", ""),
        ("\u{feff}", "\n"),
        ("Sure {here} it is:\n```json\n", "\n```\nAnything {\"else\": 1}?"),
        ("{\"ok\": true, \"meta\": {\"explain\": \"{}\"}, \"data\": ", "}"),
        (
            "```\n{\"data\":",
            ", \"meta\": {\"risk\": \"low\"}, \"ok\": true}```",
        ),
        (
            "{\"meta\":{\"data\":{\"a\":\"b\"}},\"data\":{\"a\":\"x\", \"z\":[1]},\"data\":",
            "}",
        ),
    ]);
    (object, frames).prop_map(|(object, (before, after))| {
        let data = serde_json::from_str(&object).unwrap();
        (format!("{before}{object}{after}"), data)
    })
}

fn any_options() -> impl Strategy<Value = ProjectorOptions> {
    let chunk_type = prop::sample::select(vec![ChunkType::Delta, ChunkType::Delta, ChunkType::Snapshot]);
    (chunk_type, prop_oneof![Just(0), 0..40usize, Just(1024)]).prop_map(|(kind, bytes)| options(kind, bytes))
}

pub(crate) fn cuts() -> impl Strategy<Value = Vec<(usize, bool)>> {
    let small = prop::collection::vec((0..6usize, any::<bool>()), 0..80);
    let large = prop::collection::vec((0..200usize, any::<bool>()), 0..6);
    prop_oneof![small, large]
}

/// Keys at the top of a bare object that make it look like an envelope.
fn looks_like_envelope(data: &Map<String, Value>) -> bool {
    data.keys()
        .any(|key| matches!(key.as_str(), "ok" | "meta" | "data" | "error"))
}

proptest! {
    #![proptest_config(crate::property::cases(600))]

    #[test]
    fn chunks_fold_to_the_data(
        (text, data) in reply(),
        options in any_options(),
        cuts in cuts(),
        abandoned in prop::collection::vec((reply(), cuts_short()), 0..3),
    ) {
        let mut pair = Pair::new(options);
        for ((text, _), (at, cuts)) in &abandoned {
            let mut at = at.index(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            pair.write(text.get(..at).unwrap(), cuts)?;
            pair.step(|projector, out| projector.restart(out))?;
            prop_assert!(pair.assembler.data().is_empty());
        }
        pair.write(&text, &cuts)?;
        let before = pair.chunks.len();
        pair.step(|projector, out| projector.finish(&data, out))?;
        prop_assert_eq!(print(pair.assembler.data()), print(&data));
        if options.chunk_type == ChunkType::Delta && !looks_like_envelope(&data) && !data.is_empty() {
            // All data was streamed, so no correction is needed.
            prop_assert_eq!(pair.chunks.len(), before, "{:?}", pair.chunks.last());
        }
        let end = pair.chunks.len();
        pair.step(|projector, out| projector.finish(&data, out))?;
        prop_assert_eq!(pair.chunks.len(), end);
    }

    #[test]
    fn data_that_was_not_streamed_is_corrected(
        text in "[ {}\\[\\]\":,a-c0-9]{0,40}",
        options in any_options(),
        cuts in cuts(),
    ) {
        let data = json!({"rationale": "r", "n": 1});
        let mut pair = Pair::new(options);
        pair.write(&text, &cuts)?;
        pair.step(|projector, out| projector.finish(data.as_object().unwrap(), out))?;
        prop_assert_eq!(print(pair.assembler.data()), data.to_string());
    }
}

fn cuts_short() -> impl Strategy<Value = (prop::sample::Index, Vec<(usize, bool)>)> {
    (any::<prop::sample::Index>(), cuts())
}

fn project(pieces: &[&str], options: ProjectorOptions) -> Vec<Value> {
    let mut projector = Projector::new(options);
    let mut out = Vec::new();
    for piece in pieces {
        match *piece {
            "PAUSE" => projector.flush_idle(&mut out),
            "RESTART" => projector.restart(&mut out),
            piece => projector.push_text(piece, &mut out),
        }
    }
    out.into_iter()
        .map(|chunk| chunk.into_value()["chunk"].take())
        .map(|mut chunk| {
            chunk.as_object_mut().unwrap().remove("checkpoint");
            chunk
        })
        .collect()
}

fn delta(seq: u64, field: &str, text: &str) -> Value {
    json!({"seq": seq, "type": "delta", "field": field, "delta": text})
}

fn snapshot(seq: u64, field: &str, data: impl Into<Value>) -> Value {
    json!({"seq": seq, "type": "snapshot", "field": field, "data": data.into()})
}

#[test]
fn leaves_are_emitted_as_they_arrive() {
    let pieces = [
        "{\"ok\":true,\"meta\":{\"explain\":\"no\"},\"data\":{\"a\":\"x",
        "y\\",
        "n\",\"b\":{\"c\":[1,{},\"\",tru",
        "e]},\"d.e\":null}}",
    ];
    let expected = [
        delta(1, "data.a", "x"),
        delta(2, "data.a", "y"),
        delta(3, "data.a", "\n"),
        snapshot(4, "data.b.c[0]", 1),
        snapshot(5, "data.b.c[1]", json!({})),
        delta(6, "data.b.c[2]", ""),
        snapshot(7, "data.b.c[3]", true),
        snapshot(8, "data[\"d.e\"]", Value::Null),
    ];
    assert_eq!(project(&pieces, options(ChunkType::Delta, 0)), expected);
}

#[test]
fn nothing_is_emitted_before_answer_shape_is_known() {
    let pieces = ["{\"rationale", "\"", ":", " \"", "w"];
    assert_eq!(
        project(&pieces, options(ChunkType::Delta, 0)),
        [delta(1, "data.rationale", "w")]
    );
    let envelope = ["{\"ok\": false, \"error\": {\"code\": \"E2004\"}, \"partial_data\": {\"a\": \"b\"}}"];
    assert_eq!(project(&envelope, options(ChunkType::Delta, 0)), [] as [Value; 0]);
}

#[test]
fn text_is_buffered_after_first_delta_until_full_or_paused() {
    let pieces = ["{\"a\":\"1", "2", "345", "6", "PAUSE", "7", "\"", ",\"b\":\"8\"}"];
    let expected = [
        delta(1, "data.a", "1"),
        delta(2, "data.a", "2345"),
        delta(3, "data.a", "6"),
        delta(4, "data.a", "7"),
        delta(5, "data.b", "8"),
    ];
    assert_eq!(project(&pieces, options(ChunkType::Delta, 4)), expected);
}

#[test]
fn duplicate_key_replaces_value() {
    let pieces = [
        "{\"a\":\"x\",\"b\":[1],\"a\":\"y",
        "z\",\"b\":{\"c\":2},\"a\":{}}",
    ];
    let expected = [
        delta(1, "data.a", "x"),
        snapshot(2, "data.b[0]", 1),
        snapshot(3, "data.a", "y"),
        delta(4, "data.a", "z"),
        snapshot(5, "data.b", json!({})),
        snapshot(6, "data.b.c", 2),
        snapshot(7, "data.a", json!({})),
    ];
    assert_eq!(project(&pieces, options(ChunkType::Delta, 0)), expected);
}

#[test]
fn next_attempt_retracts_emitted_data() {
    let pieces = ["x {", "RESTART", "{\"a\":\"x", "RESTART", "RESTART", "{\"b\":1}"];
    let expected = [
        delta(1, "data.a", "x"),
        snapshot(2, "data", json!({})),
        snapshot(3, "data.b", 1),
    ];
    assert_eq!(project(&pieces, options(ChunkType::Delta, 0)), expected);
    let mut projector = Projector::after(options(ChunkType::Delta, 0), 7);
    let mut out = Vec::new();
    projector.restart(&mut out);
    assert_eq!(out[0].seq(), Some(8));
}

#[test]
fn snapshots_contain_all_data_at_bounded_rate() {
    let pieces = ["{\"a\":\"x", "y", "\",\"b\":{", "PAUSE", "PAUSE", "}}"];
    let shown = |buffer| project(&pieces, options(ChunkType::Snapshot, buffer));
    assert_eq!(shown(100), [snapshot(1, "data", json!({"a": "xy", "b": {}}))]);
    assert_eq!(shown(0)[0], snapshot(1, "data", json!({"a": "x"})));
    // The sum of all snapshots stays within a constant factor of the text.
    let mut projector = Projector::new(options(ChunkType::Snapshot, 0));
    let mut out = Vec::new();
    projector.push_text("{\"a\":\"", &mut out);
    for _ in 0..20_000 {
        projector.push_text("word ", &mut out);
    }
    let sum: usize = out
        .iter()
        .map(|chunk| serde_json::to_string(chunk).unwrap().len())
        .sum();
    assert!(sum < 20 * 100_000, "{sum} bytes");
}

#[test]
fn deep_documents_fold_to_data() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(126), "]".repeat(126));
    let data = serde_json::from_str(&deep).unwrap();
    let mut pair = Pair::new(options(ChunkType::Delta, 0));
    pair.write(&deep, &[]).unwrap();
    pair.step(|projector, out| projector.finish(&data, out)).unwrap();
    assert_eq!(print(pair.assembler.data()), deep);
}

#[test]
fn any_text_is_projected_or_ignored() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let mut pair = Pair::new(options(ChunkType::Delta, bytes.len() % 5));
        pair.write(&text, &[(1, true), (3, false), (2, true), (5, false)])
            .unwrap();
        pair.step(|projector, out| projector.finish(&Map::new(), out))
            .unwrap();
    });
}
