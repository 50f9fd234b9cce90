//! How fast a stream is read, dialect by dialect, against parsing every event into a tree. Both sides see
//! the same bytes of the same run, so the ratio is what counts.

use divan::Bencher;
use divan::counter::BytesCount;
use ir::Dialect;
use wire::Decoder;
use wire::framing::{Frame, Framing, Ndjson, Sse};

const EVENTS: usize = 2000;

fn main() {
    divan::main();
}

/// A stream of text as the vendor sends it: a beginning, many small pieces. No end is needed.
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

fn decoder(bencher: Bencher<'_, '_>, dialect: Dialect) {
    let bytes = stream(dialect);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| {
        let Some(mut decoder) = Decoder::new(dialect) else {
            return 0;
        };
        let mut events = Vec::new();
        let mut count = 0;
        for piece in bytes.chunks(4096) {
            decoder.push(piece, &mut events);
            count += events.drain(..).count();
        }
        count
    });
}

/// The same bytes, every event parsed into a tree and thrown away.
fn tree(bencher: Bencher<'_, '_>, dialect: Dialect) {
    let bytes = stream(dialect);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| {
        let mut framing = match dialect {
            Dialect::Ollama => Framing::Ndjson(Ndjson::new()),
            _ => Framing::Sse(Sse::new()),
        };
        let mut count = 0;
        for piece in bytes.chunks(4096) {
            let mut sink = |frame: Frame<'_>| {
                count +=
                    usize::from(serde_json::from_slice::<serde_json::Value>(frame.data.as_bytes()).is_ok());
            };
            framing.push(piece, &mut sink).ok();
        }
        count
    });
}

macro_rules! dialects {
    ($($name:ident: $dialect:expr,)*) => {
        $(mod $name {
            use divan::Bencher;
            use ir::Dialect;

            #[divan::bench]
            fn decoder(bencher: Bencher<'_, '_>) {
                super::decoder(bencher, $dialect);
            }

            #[divan::bench]
            fn tree(bencher: Bencher<'_, '_>) {
                super::tree(bencher, $dialect);
            }
        })*
    };
}

dialects! {
    openai_chat: Dialect::OpenaiChat,
    openai_responses: Dialect::OpenaiResponses,
    anthropic: Dialect::Anthropic,
    gemini: Dialect::Gemini,
    ollama: Dialect::Ollama,
}
