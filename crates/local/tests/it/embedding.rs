//! Embeddings with a real encoder, held against vectors that its makers' own library gave.

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

fn asked(texts: &[&str]) -> EmbeddingsRequest {
    EmbeddingsRequest {
        model: None,
        input: texts.iter().map(ToString::to_string).collect(),
        dimensions: None,
        encoding_format: None,
        ext: Ext::default(),
        rest: Map::new(),
    }
}

fn request(asked: EmbeddingsRequest) -> Arc<Request> {
    Arc::new(Request::new("r", Payload::Embeddings(asked)))
}

async fn embed(embedder: &Embedder, asked: EmbeddingsRequest) -> Result<UnaryResponse, Error> {
    embedder.call(request(asked)).await
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
async fn vectors_are_those_of_the_reference_alone_and_in_a_batch() {
    let embedder = Embedder::new(options());
    let reference = reference();
    let texts: Vec<_> = reference.iter().map(|(text, ..)| text.as_str()).collect();
    let batch = embed(&embedder, asked(&texts)).await.expect("embeddings");
    for (made, (text, _, known)) in vectors(&batch).iter().zip(&reference) {
        assert!(furthest(made, known) < 2e-6, "{text}");
        assert!((dot(made, made) - 1.0).abs() < 1e-5);
    }
    let tokens: u64 = reference.iter().map(|(_, tokens, _)| tokens).sum();
    assert_eq!(batch.usage.and_then(|usage| usage.input_tokens), Some(tokens));
    let mut base64 = asked(&texts[3..4]);
    base64.encoding_format = Some(String::from("base64"));
    let alone = embed(&embedder, base64).await.expect("embeddings");
    assert!(furthest(&vectors(&alone)[0], &reference[3].2) < 2e-6);
}

#[tokio::test]
async fn what_means_the_same_is_closer_than_what_does_not() {
    let texts = [
        "How do I reset my password?",
        "I forgot my login and need a new one.",
        "The soup needs more salt.",
        "Add some seasoning to the broth.",
    ];
    let made = embed(&Embedder::new(options()), asked(&texts))
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
async fn more_texts_than_fit_at_once_come_in_their_order() {
    let texts: Vec<String> = (0..150)
        .map(|number| format!("This is text number {number}, and so on."))
        .collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let embedder = Embedder::new(options());
    let all = vectors(&embed(&embedder, asked(&texts)).await.expect("embeddings"));
    assert_eq!(all.len(), texts.len());
    for place in [0, 77, 149] {
        let alone = vectors(&embed(&embedder, asked(&texts[place..=place])).await.expect("one"));
        assert!(furthest(&all[place], &alone[0]) < 1e-5, "{place}");
    }
}

#[tokio::test]
async fn what_cannot_be_embedded_is_refused_and_never_cut() {
    let embedder = Embedder::new(options());
    let refused = async |asked| embed(&embedder, asked).await.expect_err("refused").kind;
    let long = "word ".repeat(600);
    assert_eq!(refused(asked(&["short", &long])).await, ErrorKind::ContextWindow);
    assert_eq!(refused(asked(&[])).await, ErrorKind::InvalidRequest);
    assert_eq!(refused(asked(&[""; 2049])).await, ErrorKind::ContextWindow);
    let mut other = asked(&["a"]);
    other.model = Some(String::from("another"));
    assert_eq!(refused(other).await, ErrorKind::Unsupported);
    let mut shorter = asked(&["a"]);
    shorter.dimensions = Some(128);
    assert_eq!(refused(shorter).await, ErrorKind::Unsupported);
    // Nothing at all is still two tokens, the beginning and the end.
    let empty = embed(&embedder, asked(&[""])).await.expect("embeddings");
    assert_eq!(empty.usage.and_then(|usage| usage.input_tokens), Some(2));
}

#[tokio::test]
async fn weights_that_are_none_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = testkit::embedding_model::small_encoder();
    for name in ["tokenizer.json", "config.json"] {
        std::fs::copy(whole.join(name), folder.path().join(name)).expect("copied");
    }
    let header = br#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = u64::try_from(header.len()).expect("short").to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend([0; 4]);
    for (weights, reason) in [(&bytes[..], "no tensor"), (b"GGUF....", "no safetensors")] {
        std::fs::write(folder.path().join("model.safetensors"), weights).expect("written");
        let files = EncoderFiles::in_folder(folder.path());
        let embedder = Embedder::new(EmbedderOptions::new("encoder", "broken", files));
        let error = embed(&embedder, asked(&["a"])).await.expect_err("broken");
        assert_eq!(error.kind, ErrorKind::NotEnabled);
        assert!(error.message.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn whoever_leaves_makes_room_and_the_queue_is_bounded() {
    let mut one = options();
    (one.at_once, one.queue_max) = (1, 1);
    let embedder = Embedder::new(one);
    let long = "and so on ".repeat(100);
    let many = vec![long.as_str(); 400];
    let mut calls = JoinSet::new();
    calls.spawn(embedder.call(request(asked(&many))));
    let mut second = Box::pin(embedder.call(request(asked(&["a"]))));
    // The first has to have its place before the others come.
    tokio::task::yield_now().await;
    assert!(futures::poll!(&mut second).is_pending());
    let third = embed(&embedder, asked(&["a"])).await.expect_err("refused");
    assert_eq!(third.kind, ErrorKind::RateLimited);
    // Whole, the first would take minutes.
    calls.abort_all();
    let second = tokio::time::timeout(Duration::from_secs(60), second).await;
    second.expect("in time").expect("embeddings");
}
