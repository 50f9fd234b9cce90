//! Every necessary adaptation is made and recorded, and no other.

use std::collections::BTreeSet;

use ir::adaptation::{Action, Component, Ledger};
use ir::{Feature, Operation, Payload, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::adapt::adapt;
use super::merge::merge;
use super::ssml::strip;
use crate::port::UnaryResponse;
use crate::route::Candidate;

fn request(operation: &str, payload: &Value) -> Request {
    serde_json::from_value(json!({"operation": operation, "payload": payload})).unwrap()
}

fn candidate(operation: Operation, features: &[Feature]) -> Candidate {
    let mut candidate = Candidate::new("b", "test", operation);
    candidate.features = features.iter().cloned().collect();
    candidate
}

/// The adapted payloads, and the pointers of the changes.
fn fitted(request: &Request, features: &[Feature]) -> (Vec<Value>, Vec<String>) {
    let mut ledger = Ledger::new(Component::Adapter);
    let candidate = candidate(request.operation(), features);
    let parts = adapt(request, &candidate, &mut ledger).unwrap_or_else(|| vec![request.clone()]);
    let payloads = parts.iter().map(|part| part.payload.to_json().unwrap()).collect();
    let places = ledger.entries().iter().map(|entry| entry.pointer.clone());
    (payloads, places.collect())
}

#[test]
fn unsupported_fields_are_dropped_and_recorded() {
    let speech = json!({"input": "<speak>Hi</speak>", "voice": "alloy", "ssml": true});
    let (left, places) = fitted(&request("text_to_speech", &speech), &[]);
    assert_eq!(left, [json!({"input": "Hi"})]);
    assert_eq!(places, ["/payload/voice", "/payload/ssml"]);

    let audio = json!({"kind": "inline_base64", "mime": "audio/wav", "data": "UklGRg=="});
    let sound = json!({"audio": audio, "language": "zh", "timestamps": true, "diarization": true});
    let (left, places) = fitted(&request("speech_to_text", &sound), &[]);
    assert_eq!(left, [json!({"audio": audio})]);
    assert_eq!(
        places,
        ["/payload/timestamps", "/payload/diarization", "/payload/language"]
    );

    let picture = json!({"kind": "inline_base64", "mime": "image/png", "data": "AAAA"});
    let edit = json!({"prompt": "p", "image": picture, "mask": picture, "seed": 7});
    let (left, places) = fitted(&request("image_generation", &edit), &[]);
    assert_eq!(left, [json!({"prompt": "p"})]);
    assert_eq!(places, ["/payload/mask", "/payload/image", "/payload/seed"]);
    let (left, places) = fitted(&request("image_generation", &edit), &[Feature::ImageInput]);
    assert_eq!(left, [json!({"prompt": "p", "image": picture})]);
    assert_eq!(places, ["/payload/mask", "/payload/seed"]);
}

#[test]
fn supported_fields_are_unchanged() {
    let all: Vec<Feature> = Feature::all();
    for (operation, payload) in [
        (
            "text_to_speech",
            json!({"input": "<b>", "voice": "v", "ssml": true}),
        ),
        ("embeddings", json!({"input": ["a", "b"]})),
        ("image_generation", json!({"prompt": "p", "seed": 7})),
    ] {
        let (left, places) = fitted(&request(operation, &payload), &all);
        assert_eq!((left, places), (vec![payload], Vec::<String>::new()));
    }
}

#[test]
fn batch_is_split_and_merged() {
    let asked = request("embeddings", &json!({"model": "m", "input": ["a", "b", "c"]}));
    let mut ledger = Ledger::new(Component::Adapter);
    let parts = adapt(&asked, &candidate(Operation::Embeddings, &[]), &mut ledger).unwrap();
    assert_eq!(parts.len(), 3);
    assert_eq!(ledger.entries()[0].action, Action::Merged);
    assert_eq!(ledger.losses().count(), 0, "the answer is the same");
    let answers = parts.iter().zip(1..).map(|(part, tokens)| {
        let Payload::Embeddings(part) = &part.payload else {
            panic!("another operation")
        };
        let vector = json!([part.input[0].len(), tokens]);
        let payload = json!({"model": "m", "embeddings": [{"index": 0, "vector": vector}]});
        UnaryResponse {
            payload: ir::ResponsePayload::from_json(Operation::Embeddings, payload).unwrap(),
            usage: Some(ir::Usage {
                input_tokens: Some(tokens),
                ..ir::Usage::default()
            }),
            adaptations: Vec::new(),
            raw: None,
        }
    });
    let whole = merge(answers.collect()).unwrap();
    assert_eq!(whole.usage.unwrap().input_tokens, Some(6));
    let payload = whole.payload.to_json().unwrap();
    let places: Vec<_> = (0..3)
        .map(|at| payload["embeddings"][at]["index"].clone())
        .collect();
    assert_eq!(places, [json!(0), json!(1), json!(2)]);
    assert_eq!(payload["embeddings"][2]["vector"], json!([1, 3]));
}

#[test]
fn ssml_is_stripped_to_its_text() {
    for (marked, plain) in [
        ("plain", "plain"),
        ("<speak>a<break time=\"1s\"/>b</speak>", "a b"),
        ("<emphasis level='strong'>very</emphasis> good", "very good"),
        (
            "the <sub alias=\"World Wide Web\">WWW</sub> is",
            "the World Wide Web is",
        ),
        ("<!-- hidden --> seen", "seen"),
        ("5 < 6 & 7 &lt; 8 &amp;", "5 < 6 & 7 < 8 &"),
        ("never <closed", "never <closed"),
        ("<p>one</p><p>two</p>", "one two"),
    ] {
        assert_eq!(strip(marked), plain, "{marked}");
    }
}

proptest! {
    #[test]
    fn plain_text_is_unchanged_by_strip(text in "\\PC{0,40}") {
        let plain = strip(&text);
        if !text.contains(['<', '&']) {
            let words: Vec<&str> = text.split_whitespace().collect();
            prop_assert_eq!(plain, words.join(" "));
        }
    }

    #[test]
    fn every_change_is_in_the_ledger(voice in any::<bool>(), ssml in any::<bool>(), mask in 0_u8..4) {
        let mut speech = json!({"input": "text"});
        if voice { speech["voice"] = json!("v"); }
        if ssml { speech["ssml"] = json!(true); }
        let asked = request("text_to_speech", &speech);
        let features: BTreeSet<Feature> = [Feature::Voices, Feature::Ssml]
            .into_iter()
            .zip([mask & 1, mask & 2])
            .filter(|(_, bit)| *bit != 0)
            .map(|(feature, _)| feature)
            .collect();
        let features: Vec<Feature> = features.into_iter().collect();
        let (left, places) = fitted(&asked, &features);
        prop_assert_eq!(left[0] != speech, !places.is_empty());
    }
}
