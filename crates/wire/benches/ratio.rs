//! Throughput of the stream decoders, per dialect, relative to parsing every event of the same bytes into a
//! tree. A decoder must be at least 1.5 times as fast. Prints one JSON line per figure for `cargo x bench`;
//! under the test runner it runs only a few iterations.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads its arguments and the clock"
)]

#[path = "../../../bench/bench_main.rs"]
mod bench_main;
#[path = "../../../bench/figure.rs"]
mod figure;

use std::hint::black_box;

use ir::Dialect;
use serde_json::Value;
use wire::Decoder;
use wire::framing::{Frame, Framing, Ndjson, Sse};

const EVENTS: usize = 2000;
/// 1.5 times as fast, as a fraction of the baseline's time.
const LIMIT: f64 = 1.0 / 1.5;
const PIECE_BYTES: usize = 4096;

fn main() {
    bench_main::main("ratio", measure_all);
}

fn measure_all() {
    for dialect in wire::chat::DIALECTS {
        let bytes = stream(*dialect);
        let name = format!("stream decoder, {dialect}");
        let against = "`from_slice::<Value>` per event";
        figure::figure(
            &name,
            against,
            LIMIT,
            || decode(*dialect, &bytes),
            || parse_trees(*dialect, &bytes),
        );
    }
}

/// A text stream in the vendor's format: the start and many small deltas, without an end.
fn stream(dialect: Dialect) -> Vec<u8> {
    let (first, piece): (&str, &str) = match dialect {
        Dialect::OpenaiChat => (
            r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}"#,
        ),
        Dialect::Anthropic => (
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}"#,
        ),
        Dialect::OpenaiResponses => (
            r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"gpt-5","created_at":1760000000}}"#,
            r#"{"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" word","logprobs":[]}"#,
        ),
        Dialect::Gemini => (
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"modelVersion":"gemini-3-flash","responseId":"r1"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":" word"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15},"modelVersion":"gemini-3-flash","responseId":"r1"}"#,
        ),
        _ => (
            r#"{"model":"llama3.2","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"a"},"done":false}"#,
            r#"{"model":"llama3.2","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":" word"},"done":false}"#,
        ),
    };
    let mut bytes = Vec::new();
    let mut write = |data: &str| match dialect {
        Dialect::Ollama => Ndjson::write(&mut bytes, data),
        _ => Sse::write(&mut bytes, "", data),
    };
    write(first);
    for _ in 0..EVENTS {
        write(piece);
    }
    bytes
}

fn decode(dialect: Dialect, bytes: &[u8]) {
    let mut decoder = Decoder::new(dialect);
    let mut events = Vec::new();
    let mut count = 0;
    for piece in bytes.chunks(PIECE_BYTES) {
        if let Some(decoder) = &mut decoder {
            decoder.push(piece, &mut events);
        }
        count += events.drain(..).count();
    }
    assert!(count > EVENTS, "{dialect} gave {count} events");
    black_box(count);
}

/// The same bytes, every event parsed into a tree and dropped.
fn parse_trees(dialect: Dialect, bytes: &[u8]) {
    let mut framing = match dialect {
        Dialect::Ollama => Framing::Ndjson(Ndjson::new()),
        _ => Framing::Sse(Sse::new()),
    };
    let mut count = 0;
    for piece in bytes.chunks(PIECE_BYTES) {
        let mut sink = |frame: Frame<'_>| {
            count += usize::from(serde_json::from_slice::<Value>(frame.data.as_bytes()).is_ok());
        };
        framing.push(piece, &mut sink).ok();
    }
    assert!(count > EVENTS);
    black_box(count);
}
