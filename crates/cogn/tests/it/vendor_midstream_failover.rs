//! Mid-stream failover to a real model: the client reads one stream with one end, and no text twice.

use ir::{Dialect, FinishReason};
use serde_json::{Value, json};
use testkit::http::{MockServer, scripted};
use testkit::llama_server::Llama;

use crate::harness::Stage;
use crate::vendor_client::{DIALECTS, ask, body_of, events, is_ended, question};

const ASKED: &str = "Count from one to twenty in words.";
const BEGUN: &str = "One, two, three, four, five, six,";

/// The kinds of back-end that a llama-server can be, and the prefix of their paths.
const KINDS: [(&str, Dialect, &str); 2] = [
    ("openai", Dialect::OpenaiChat, "/v1"),
    ("anthropic", Dialect::Anthropic, ""),
];

fn asked(dialect: Dialect) -> Value {
    let mut body = question(dialect, "m", ASKED);
    body["temperature"] = json!(0);
    body["stream"] = json!(true);
    let most = match dialect {
        Dialect::OpenaiResponses => "max_output_tokens",
        _ => "max_tokens",
    };
    body[most] = json!(48);
    body
}

/// The model's own continuation of the prefix.
async fn continuation(llama: &Llama) -> String {
    let body = json!({
        "messages": [{"role": "user", "content": ASKED}, {"role": "assistant", "content": BEGUN}],
        "temperature": 0, "max_tokens": 24
    });
    let request = reqwest::Client::new().post(llama.url("/v1/chat/completions"));
    let answer = body_of(request.body(body.to_string()).send().await.unwrap()).await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    // In an unstreamed response this server repeats the prefix.
    String::from(text.strip_prefix(BEGUN).unwrap_or(text))
}

/// A back-end that fails in the middle of its answer, and a second one with these features.
fn configured(kind: &str, dying: &str, llama: &str, features: &str) -> String {
    format!(
        "[[backends]]\nname = \"dying\"\nkind = \"{kind}\"\nbase_url = \"{dying}\"\npriority = 2\n\
         [[backends]]\nname = \"llama\"\nkind = \"{kind}\"\nbase_url = \"{llama}\"\npriority = 1\n\
         features = [{features}]\n\
         [routing]\npolicy = \"priority\"\nretry = {{same_backend_max = 0}}\n\
         breaker = {{failures = 1000, failure_ratio = 1.0}}\n"
    )
}

/// Sends the prefix, then closes the connection.
fn dying(dialect: Dialect) -> MockServer {
    let reply = format!("{BEGUN} seven, eight");
    let script = json!([{"reply": reply, "chunk_bytes": 5, "cut_after_bytes": BEGUN.len()}]);
    scripted(dialect, &script.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn real_model_continues_the_stream_of_another_backend() {
    let llama = tokio::task::block_in_place(Llama::shared);
    let expected = continuation(llama).await;
    assert!(
        !expected.trim().is_empty() && !expected.contains(BEGUN),
        "{expected}"
    );
    for (kind, spoken, before) in KINDS {
        let dying = dying(spoken);
        let stage = Stage::new();
        let features = r#""supports_stream", "supports_prefill""#;
        let config = configured(kind, &dying.url(""), &llama.url(before), features);
        let config = stage.config(&config);
        let server = stage.serve_with(&["--config", &config], &[]);
        for dialect in DIALECTS {
            let response = ask(&server, dialect, &asked(dialect)).await;
            assert_eq!(response.status(), 200);
            let stream = response.text().await.unwrap();
            check(dialect, &stream, &expected);
        }
        assert_eq!(dying.received().len(), DIALECTS.len(), "{kind}");
    }
}

/// A back-end that cannot stream repeats the prefix: it is not called, and the stream ends in an error.
#[tokio::test(flavor = "multi_thread")]
async fn backend_that_would_repeat_the_prefix_is_not_called() {
    let llama = tokio::task::block_in_place(Llama::shared);
    let dying = dying(Dialect::OpenaiChat);
    let stage = Stage::new();
    let features = r#""supports_prefill""#;
    let config = configured("openai", &dying.url(""), &llama.url("/v1"), features);
    let config = stage.config(&config);
    let server = stage.serve_with(&["--config", &config], &[]);
    for dialect in DIALECTS {
        let response = ask(&server, dialect, &asked(dialect)).await;
        assert_eq!(response.status(), 200);
        let stream = response.text().await.unwrap();
        assert!(!is_ended(&stream), "{stream}");
        let seen = events(dialect, stream.as_bytes());
        let deltas = seen.iter().filter_map(|event| match event {
            ir::Event::BlockDelta {
                delta: ir::Delta::Text { text },
                ..
            } => Some(text.as_str()),
            _ => None,
        });
        let text: String = deltas.collect();
        assert!(text.starts_with(BEGUN) && !text.contains("seven"), "{text}");
        let errors = seen
            .iter()
            .filter(|event| matches!(event, ir::Event::Error { .. }));
        assert_eq!(errors.count(), 1, "{stream}");
    }
}

fn check(dialect: Dialect, stream: &str, expected: &str) {
    // The vendor's terminator, exactly once and last. These answers end at the token limit.
    let mark = match dialect {
        Dialect::Anthropic => "event: message_stop",
        Dialect::OpenaiResponses => "event: response.incomplete",
        _ => "data: [DONE]",
    };
    assert_eq!(stream.matches(mark).count(), 1, "{stream}");
    let last = stream.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.starts_with(mark), "{stream}");
    let begin = match dialect {
        Dialect::Anthropic => "event: message_start",
        Dialect::OpenaiResponses => "event: response.created",
        _ => "\"role\":\"assistant\"",
    };
    assert_eq!(stream.matches(begin).count(), 1, "{stream}");
    let mut fold = ir::Fold::new();
    let mut ends = 0;
    for event in events(dialect, stream.as_bytes()) {
        ends += usize::from(matches!(event, ir::Event::Finish { .. }));
        assert!(!matches!(event, ir::Event::Error { .. }), "{stream}");
        fold.push(event);
    }
    assert_eq!(ends, 1, "{stream}");
    let answer = fold.finish().unwrap();
    assert!(
        matches!(
            answer.finish_reason,
            Some(FinishReason::Stop | FinishReason::Length)
        ),
        "{answer:?}"
    );
    let text = answer.text();
    let rest = text.strip_prefix(BEGUN).unwrap_or_else(|| panic!("{text}"));
    // The length depends on the remaining tokens; the text must equal the model's own.
    let both = rest.len().min(expected.len());
    assert!(both > 10, "{rest:?} {expected:?}");
    assert_eq!(rest.get(..both), expected.get(..both), "{dialect}");
}
