//! Documents and streams that grow at one place take work in proportion to their size. The measure of the work
//! is the bytes that the thread allocates: a decoder that copies what it has read so far, once per item,
//! allocates bytes in proportion to the square. Searches without copies are not counted.

use std::collections::BTreeSet;
use std::fs;

use ir::{Component, Dialect, Ledger};
use serde_json::{Value, json};
use wire::base64_extractor::{Base64Extractor, BytesSink};
use wire::media::{ConversionContext, Locality};
use wire::{Decoder, chat, document, media, messages};

use crate::fixtures::{fixture_paths, fixtures, pointers};

/// By how much documents grow.
const SIZE: usize = 256;

#[derive(Default)]
struct Counts {
    /// Cases whose work grows at all.
    growing: usize,
    superlinear: Vec<String>,
}

impl Counts {
    /// Measures `work` on what `input` makes of size 0, which is the rest of the document, of `size`, and of twice that.
    fn add<T>(&mut self, name: &str, size: usize, input: impl Fn(usize) -> T, work: impl Fn(T)) {
        let allocated = |size: usize| {
            let input = input(size);
            allocation_counter::measure(|| work(input)).bytes_total
        };
        let rest = allocated(0);
        let above = |size: usize| allocated(size).saturating_sub(rest);
        let (few, many) = (above(size), above(2 * size));
        self.growing += usize::from(few >= size as u64);
        // Buffers grow to powers of two, which two sizes may lie on both sides of, and quotes in errors are cut.
        let slack = 16 * 1_024;
        let is_steep = |few: u64, many: u64| many * 10 > few * 22 + slack * 10;
        if !is_steep(few, many) {
            return;
        }
        let larger = [4 * size, 8 * size].map(above);
        if is_steep(many, larger[0]) && is_steep(larger[0], larger[1]) {
            let all = format!("{name}: {few} bytes grow to {many}, {larger:?}");
            self.superlinear.push(all);
        }
    }

    fn assert_linear(&self, growing_min: usize) {
        assert!(self.superlinear.is_empty(), "{:#?}", self.superlinear);
        assert!(
            self.growing >= growing_min,
            "the work of {} cases grows",
            self.growing
        );
    }
}

/// The document with `size` more unknown members, items or characters at `pointer`.
fn grown(document: &Value, pointer: &str, size: usize) -> Value {
    let mut document = document.clone();
    match document.pointer_mut(pointer) {
        Some(Value::Object(map)) => {
            map.extend((0..size).map(|index| (format!("unknown_{index}"), json!({"a": index}))));
        }
        Some(Value::Array(list)) => {
            let item = list
                .last()
                .cloned()
                .unwrap_or(json!({"type": "text", "text": "t"}));
            list.extend(std::iter::repeat_n(item, size));
        }
        Some(Value::String(text)) => text.push_str(&"<|a\u{e9}\"".repeat(16 * size)),
        _ => {}
    }
    document
}

/// Places where documents grow: each once per dialect, without the positions in lists.
fn places(dialect: Dialect, documents: Vec<(String, Value)>) -> Vec<(String, Value, String)> {
    let mut seen = BTreeSet::new();
    let mut places = Vec::new();
    for (name, document) in documents {
        for pointer in pointers(&document) {
            let grows = |value: &Value| value.is_object() || value.is_array() || value.is_string();
            let place: Vec<&str> = pointer
                .split('/')
                .filter(|step| step.parse::<usize>().is_err())
                .collect();
            let kind = document.pointer(&pointer).filter(|value| grows(value));
            let Some(kind) = kind.map(std::mem::discriminant) else {
                continue;
            };
            if seen.insert((place.join("/"), format!("{kind:?}"))) {
                places.push((format!("{dialect} {name} {pointer}"), document.clone(), pointer));
            }
        }
    }
    places
}

#[test]
fn bodies_are_decoded_in_linear_time() {
    let mut counts = Counts::default();
    for dialect in Dialect::ALL {
        for (name, document, pointer) in places(dialect, fixtures_or_none(dialect, ".request.json")) {
            let input = |size| grown(&document, &pointer, size);
            counts.add(&name, SIZE, input, |body| {
                let mut ledger = Ledger::new(Component::Adapter);
                if let Ok(request) = document::decode_request(dialect, body) {
                    document::encode_request(dialect, &request, &mut ledger).ok();
                }
            });
        }
        for (name, document, pointer) in places(dialect, fixtures_or_none(dialect, ".response.json")) {
            let input = |size| grown(&document, &pointer, size);
            counts.add(&name, SIZE, input, |body| {
                let mut ledger = Ledger::new(Component::Adapter);
                if let Ok(response) = document::decode_response(dialect, body) {
                    document::encode_response(dialect, &response, &mut ledger).ok();
                }
            });
        }
    }
    counts.assert_linear(600);
}

/// Some dialects have no bodies of their own.
fn fixtures_or_none(dialect: Dialect, suffix: &str) -> Vec<(String, Value)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    match folder.join(dialect.as_str()).is_dir() {
        true => fixtures(dialect, suffix),
        false => Vec::new(),
    }
}

/// Each request into every other dialect, with its list of messages grown.
#[test]
fn chats_are_converted_in_linear_time() {
    let mut counts = Counts::default();
    for source in chat::DIALECTS {
        let places = places(*source, fixtures(*source, ".request.json"));
        let lists = places
            .into_iter()
            .filter(|(_, document, pointer)| document.pointer(pointer).is_some_and(Value::is_array));
        for (name, document, pointer) in lists {
            for target in chat::DIALECTS {
                let input = |size| grown(&document, &pointer, size);
                counts.add(&format!("{name} to {target}"), SIZE, input, |body| {
                    if let Ok(request) = chat::decode_request(*source, body) {
                        let mut ledger = Ledger::new(Component::Adapter);
                        chat::encode_request(*target, &request, &mut ledger).ok();
                    }
                });
            }
        }
    }
    counts.assert_linear(100);
}

#[test]
fn media_and_messages_are_decoded_in_linear_time() {
    let aliases = ir::media::ForeignIds::default();
    let setting = ConversionContext {
        place: Locality::Local,
        aliases: &aliases,
    };
    let mut counts = Counts::default();
    for (dialect, example) in crate::media::examples() {
        for (name, document, pointer) in places(dialect, vec![(String::from("media"), example)]) {
            let input = |size| grown(&document, &pointer, size);
            counts.add(&name, SIZE, input, |value| {
                let mut ledger = Ledger::new(Component::Adapter);
                if let Ok(read) = media::decode(dialect, value, &setting) {
                    media::may_persist(&read).ok();
                    media::encode(dialect, &read, &setting, &mut ledger).ok();
                }
            });
        }
    }
    for (dialect, example) in crate::messages::examples() {
        for (name, document, pointer) in places(dialect, vec![(String::from("messages"), example)]) {
            let input = |size| grown(&document, &pointer, size);
            counts.add(&name, SIZE, input, |value| {
                let mut ledger = Ledger::new(Component::Adapter);
                if let Ok(mut read) = messages::decode(dialect, value, &setting) {
                    messages::complete_pairs(&mut read.messages);
                    messages::encode(dialect, &read, &setting, &mut ledger).ok();
                }
            });
        }
    }
    counts.assert_linear(100);
}

/// Each line of the recorded streams, repeated.
#[test]
fn streams_are_decoded_in_linear_time() {
    let mut counts = Counts::default();
    for dialect in chat::DIALECTS {
        let recorded = fixture_paths(*dialect, ".stream.").into_iter();
        for path in recorded.filter(|path| path.extension().is_some_and(|kind| kind != "snap")) {
            let text = fs::read_to_string(&path).unwrap();
            let separator = match path.extension().is_some_and(|kind| kind == "sse") {
                true => "\n\n",
                false => "\n",
            };
            let pieces: Vec<&str> = text.split_inclusive(separator).collect();
            for repeated in 0..pieces.len() {
                let input = |size: usize| {
                    let times = |at: usize| if at == repeated { size + 1 } else { 1 };
                    let all = pieces.iter().enumerate();
                    all.map(|(at, piece)| piece.repeat(times(at))).collect::<String>()
                };
                let name = format!("{} event {repeated}", path.display());
                counts.add(&name, SIZE, input, |stream| {
                    let mut decoder = Decoder::new(*dialect).unwrap();
                    let mut events = Vec::new();
                    for piece in stream.as_bytes().chunks(1_000) {
                        decoder.push(piece, &mut events);
                    }
                    decoder.finish(&mut events);
                });
            }
        }
    }
    counts.assert_linear(200);
}

struct Discard;

impl BytesSink for Discard {
    fn take(&mut self, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn close(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn base64_is_extracted_in_linear_time() {
    let texts: [fn(usize) -> String; 5] = [
        |size| format!("{{\"b64_json\":\"{}\"}}", "QUJD".repeat(size)),
        |size| format!("[{}1]", "{\"b64_json\":\"QUJDREVGQUJD\"},".repeat(size)),
        |size| format!("{{\"a\":\"{}\"}}", "\\\"".repeat(size)),
        |size| "{\"b64_json\":[".repeat(size),
        |size| "\"b64_json\":".repeat(size),
    ];
    let mut counts = Counts::default();
    for (index, text) in texts.iter().enumerate() {
        counts.add(&format!("text {index}"), 4_096, text, |text| {
            let mut extractor = Base64Extractor::new("b64_json", 8, 1);
            let mut pieces = text.as_bytes().chunks(100);
            if pieces
                .try_for_each(|piece| extractor.push(piece, &mut Discard))
                .is_ok()
            {
                extractor.finish().ok();
            }
        });
    }
    counts.assert_linear(2);
}
