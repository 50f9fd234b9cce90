//! Embeddings of a real encoder, compared with vectors from its reference library.

use std::sync::Arc;
use std::time::Duration;

use engine::port::{UnaryResponse, Upstream};
use ir::envelope::{EmbeddingVector, EmbeddingsRequest, ResponsePayload};
use ir::media::Base64;
use ir::{Error, ErrorKind, Ext, Map, Payload, Request};
use local::{Embedder, EmbedderOptions, EncoderFiles};
use serde_json::Value;
use tokio::task::JoinSet;

fn options() -> EmbedderOptions {
    let files = EncoderFiles::in_folder(testkit::embedding_model::small_encoder());
    EmbedderOptions::new("encoder", "all-minilm-l6-v2", files)
}

fn inputs(texts: &[&str]) -> EmbeddingsRequest {
    EmbeddingsRequest {
        model: None,
        input: texts.iter().map(ToString::to_string).collect(),
        dimensions: None,
        encoding_format: None,
        ext: Ext::default(),
        rest: Map::new(),
    }
}

fn request(payload: EmbeddingsRequest) -> Arc<Request> {
    Arc::new(Request::new("r", Payload::Embeddings(payload)))
}

async fn embed(embedder: &Embedder, payload: EmbeddingsRequest) -> Result<UnaryResponse, Error> {
    embedder.call(request(payload)).await
}

fn vectors(answer: &UnaryResponse) -> Vec<Vec<f64>> {
    let ResponsePayload::Embeddings(made) = &answer.payload else {
        panic!("no embeddings: {answer:?}")
    };
    let read = |vector: &EmbeddingVector| match vector {
        EmbeddingVector::Numbers(numbers) => numbers.iter().filter_map(|number| number.as_f64()).collect(),
        EmbeddingVector::Base64(text) => {
            let bytes = Base64::from_text(text.as_str()).decode().expect("base64");
            let (floats, _) = bytes.as_chunks::<4>();
            floats
                .iter()
                .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
                .collect()
        }
    };
    let places: Vec<_> = made.embeddings.iter().map(|one| one.index).collect();
    assert!(places.into_iter().eq(0..made.embeddings.len() as u64));
    made.embeddings.iter().map(|one| read(&one.vector)).collect()
}

fn reference() -> Vec<(String, u64, Vec<f64>)> {
    let file: Value = serde_json::from_str(include_str!("fixtures/minilm.json")).expect("JSON");
    let texts = file["texts"].as_array().expect("texts").iter();
    texts
        .map(|row| {
            let vector = row["vector"].as_array().expect("a vector").iter();
            (
                String::from(row["text"].as_str().expect("a text")),
                row["tokens"].as_u64().expect("a count"),
                vector.map(|number| number.as_f64().expect("a number")).collect(),
            )
        })
        .collect()
}

fn furthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn vectors_match_reference_alone_and_in_batch() {
    let embedder = Embedder::new(options());
    let reference = reference();
    let texts: Vec<_> = reference.iter().map(|(text, ..)| text.as_str()).collect();
    let batch = embed(&embedder, inputs(&texts)).await.expect("embeddings");
    for (made, (text, _, known)) in vectors(&batch).iter().zip(&reference) {
        assert!(furthest(made, known) < 2e-6, "{text}");
        assert!((dot(made, made) - 1.0).abs() < 1e-5);
    }
    let tokens: u64 = reference.iter().map(|(_, tokens, _)| tokens).sum();
    assert_eq!(batch.usage.and_then(|usage| usage.input_tokens), Some(tokens));
    let mut base64 = inputs(&texts[3..4]);
    base64.encoding_format = Some(String::from("base64"));
    let alone = embed(&embedder, base64).await.expect("embeddings");
    assert!(furthest(&vectors(&alone)[0], &reference[3].2) < 2e-6);
}

#[tokio::test]
async fn similar_texts_are_closer_than_dissimilar_ones() {
    let texts = [
        "How do I reset my password?",
        "I forgot my login and need a new one.",
        "The soup needs more salt.",
        "Add some seasoning to the broth.",
    ];
    let made = embed(&Embedder::new(options()), inputs(&texts))
        .await
        .expect("embeddings");
    let made = vectors(&made);
    let close = dot(&made[0], &made[1]).min(dot(&made[2], &made[3]));
    for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        assert!(
            dot(&made[a], &made[b]) + 0.2 < close,
            "{} and {}",
            texts[a],
            texts[b]
        );
    }
}

#[tokio::test]
async fn texts_beyond_one_batch_keep_their_order() {
    let texts: Vec<String> = (0..150)
        .map(|number| format!("This is text number {number}, and so on."))
        .collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let embedder = Embedder::new(options());
    let all = vectors(&embed(&embedder, inputs(&texts)).await.expect("embeddings"));
    assert_eq!(all.len(), texts.len());
    for place in [0, 77, 149] {
        let alone = vectors(
            &embed(&embedder, inputs(&texts[place..=place]))
                .await
                .expect("one"),
        );
        assert!(furthest(&all[place], &alone[0]) < 1e-5, "{place}");
    }
}

#[tokio::test]
async fn unsupported_input_is_refused_not_truncated() {
    let embedder = Embedder::new(options());
    let refused = async |payload| embed(&embedder, payload).await.expect_err("refused").kind;
    let long = "word ".repeat(600);
    assert_eq!(refused(inputs(&["short", &long])).await, ErrorKind::ContextWindow);
    assert_eq!(refused(inputs(&[])).await, ErrorKind::InvalidRequest);
    assert_eq!(refused(inputs(&[""; 2049])).await, ErrorKind::ContextWindow);
    let mut other = inputs(&["a"]);
    other.model = Some(String::from("another"));
    assert_eq!(refused(other).await, ErrorKind::Unsupported);
    let mut shorter = inputs(&["a"]);
    shorter.dimensions = Some(128);
    assert_eq!(refused(shorter).await, ErrorKind::Unsupported);
    // An empty text has two tokens, start and end.
    let empty = embed(&embedder, inputs(&[""])).await.expect("embeddings");
    assert_eq!(empty.usage.and_then(|usage| usage.input_tokens), Some(2));
}

#[tokio::test]
async fn invalid_weights_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = testkit::embedding_model::small_encoder();
    for name in ["tokenizer.json", "config.json"] {
        std::fs::copy(whole.join(name), folder.path().join(name)).expect("copied");
    }
    let header = br#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = u64::try_from(header.len()).expect("short").to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend([0; 4]);
    for (weights, reason) in [(&bytes[..], "no tensor"), (b"GGUF....", "not a safetensors")] {
        std::fs::write(folder.path().join("model.safetensors"), weights).expect("written");
        let files = EncoderFiles::in_folder(folder.path());
        let embedder = Embedder::new(EmbedderOptions::new("encoder", "broken", files));
        let error = embed(&embedder, inputs(&["a"])).await.expect_err("broken");
        assert_eq!(error.kind, ErrorKind::NotEnabled);
        assert!(error.message.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn dropped_call_releases_permit_and_queue_is_bounded() {
    let mut one = options();
    (one.at_once, one.queue_max) = (1, 1);
    let embedder = Embedder::new(one);
    let long = "and so on ".repeat(100);
    let many = vec![long.as_str(); 400];
    let mut calls = JoinSet::new();
    calls.spawn(embedder.call(request(inputs(&many))));
    let mut second = Box::pin(embedder.call(request(inputs(&["a"]))));
    // The first call acquires its permit before the others start.
    tokio::task::yield_now().await;
    assert!(futures::poll!(&mut second).is_pending());
    let third = embed(&embedder, inputs(&["a"])).await.expect_err("refused");
    assert_eq!(third.kind, ErrorKind::RateLimited);
    // Without cancellation the first call would take minutes.
    calls.abort_all();
    let second = tokio::time::timeout(Duration::from_secs(60), second).await;
    second.expect("in time").expect("embeddings");
}
