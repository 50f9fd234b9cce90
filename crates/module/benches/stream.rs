//! Benchmarks of streaming: the push parser compared with `serde_json` on the same bytes, the projection of a
//! reply into chunks, and the folding of the chunks. `cargo test` runs each once.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use module::manifest::ChunkType;
use module::stream::json::{JsonEvent, JsonParser};
use module::stream::{Assembler, Chunk, Projector, ProjectorOptions, assemble_ndjson};
use serde_json::{Map, Value, json};

fn main() {
    divan::main();
}

#[derive(Clone, Copy, Debug)]
enum Load {
    Text,
    Cjk,
    Numbers,
    Records,
}

const LOADS: [Load; 4] = [Load::Text, Load::Cjk, Load::Numbers, Load::Records];

/// About 256 KiB of data of one kind.
fn data(load: Load) -> Map<String, Value> {
    let mut data = Map::new();
    let value = match load {
        Load::Text => {
            let line = "The quick brown fox said \"no\" and jumped over the lazy dog at the river.\n";
            json!(vec![line.repeat(40); 85])
        }
        Load::Cjk => json!(vec![
            "图像显示一幅美丽的日落在山峰之上，温暖的橙色光线。"
                .repeat(40);
            85
        ]),
        Load::Numbers => json!((0..20_000).map(|n| f64::from(n) * 0.37).collect::<Vec<_>>()),
        Load::Records => {
            let record = |n: i32| json!({"label": "mountain", "confidence": 0.95, "box": [n, n + 1, 3, 4], "seen": true});
            Value::Array((0..3_000).map(record).collect())
        }
    };
    data.insert(String::from("rationale"), json!("Because."));
    data.insert(String::from("items"), value);
    data
}

fn text(load: Load) -> String {
    Value::Object(data(load)).to_string()
}

#[divan::bench(args = LOADS)]
fn serde_json_value(bencher: Bencher<'_, '_>, load: Load) {
    let text = text(load);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| serde_json::from_slice::<Value>(black_box(text.as_bytes())));
}

#[divan::bench(args = LOADS)]
fn parser_in_4096_byte_pieces(bencher: Bencher<'_, '_>, load: Load) {
    parse(bencher, load, 4096);
}

#[divan::bench(args = LOADS)]
fn parser_in_8_byte_pieces(bencher: Bencher<'_, '_>, load: Load) {
    parse(bencher, load, 8);
}

fn parse(bencher: Bencher<'_, '_>, load: Load, size: usize) {
    let text = text(load);
    bencher.counter(BytesCount::of_str(&text)).bench(|| {
        let mut parser = JsonParser::new();
        let mut seen = 0;
        let mut sink = |event: JsonEvent<'_>| {
            seen += match black_box(event) {
                JsonEvent::TextDelta(text) => text.len(),
                _ => 1,
            };
        };
        let result = black_box(text.as_bytes())
            .chunks(size)
            .try_for_each(|piece| parser.push(piece, &mut sink))
            .and_then(|()| parser.finish(&mut sink));
        assert_eq!(result, Ok(()));
        seen
    });
}

/// As from a provider's decoder: text, split between code points.
#[divan::bench(args = LOADS)]
fn parser_in_tokens_of_text(bencher: Bencher<'_, '_>, load: Load) {
    let text = text(load);
    let mut tokens = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(8));
        tokens.push(piece);
        rest = after;
    }
    bencher.counter(BytesCount::of_str(&text)).bench(|| {
        let mut parser = JsonParser::new();
        let mut sink = |event: JsonEvent<'_>| {
            black_box(event);
        };
        let result = black_box(&tokens)
            .iter()
            .try_for_each(|piece| parser.push_str(piece, &mut sink));
        assert_eq!(result, Ok(()));
    });
}

fn project(text: &str, chunk_type: ChunkType, size: usize) -> Vec<Chunk> {
    let mut projector = Projector::new(ProjectorOptions {
        chunk_type,
        buffer_bytes: 1024,
    });
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
        projector.push_text(piece, &mut out);
        rest = after;
    }
    out
}

#[divan::bench(args = LOADS)]
fn projection_of_tokens(bencher: Bencher<'_, '_>, load: Load) {
    let text = text(load);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| project(black_box(&text), ChunkType::Delta, 8));
}

#[divan::bench(args = LOADS)]
fn projection_to_snapshots(bencher: Bencher<'_, '_>, load: Load) {
    let text = text(load);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| project(black_box(&text), ChunkType::Snapshot, 8));
}

#[divan::bench(args = LOADS)]
fn assembly_of_chunks(bencher: Bencher<'_, '_>, load: Load) {
    let text = text(load);
    let chunks = project(&text, ChunkType::Delta, 8);
    bencher
        .counter(BytesCount::of_str(&text))
        .with_inputs(|| chunks.clone())
        .bench_values(|chunks| {
            let mut assembler = Assembler::new();
            for chunk in chunks {
                // Without a meta chunk, only the first chunk is a violation.
                black_box(assembler.push(chunk)).unwrap_or_default();
            }
            assembler.finish()
        });
}

#[divan::bench(args = LOADS)]
fn assembly_of_lines(bencher: Bencher<'_, '_>, load: Load) {
    let chunks = project(&text(load), ChunkType::Delta, 8);
    let lines: Vec<String> = chunks
        .into_iter()
        .map(|chunk| chunk.into_value().to_string())
        .collect();
    let lines = lines.join("\n");
    bencher
        .counter(BytesCount::of_str(&lines))
        .bench(|| assemble_ndjson(black_box(lines.as_bytes())));
}
