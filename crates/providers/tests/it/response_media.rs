//! Images and audio of responses: large media is in the spill store while it arrives and as long as the
//! response is referenced, and every failure releases it.

use std::sync::Arc;
use std::time::Duration;

use engine::port::{UnaryResponse as Answered, Upstream};
use ir::media::{Base64, MediaHandle};
use ir::{Error, ErrorKind, MediaSource, Operation, Phase, Request, ResponsePayload};
use providers::limits::MEDIA_ANSWER_BYTES_MAX;
use providers::{ClientOptions, CommandOptions, CommandUpstream, HttpOptions, HttpUpstream};
use serde_json::{Value, json};
use spill::SpillStore;
use testkit::http::{MockServer, ScriptedResponse};
use tokio::task::JoinSet;

use crate::kinds::{client, options, run};

const THRESHOLD: u64 = 64 * 1024;

fn roomy() -> SpillStore {
    SpillStore::new(None, THRESHOLD, u64::MAX)
}

fn back_end(server: &MockServer, spill: &SpillStore) -> HttpUpstream {
    let options = HttpOptions {
        spill: spill.clone(),
        ..options(&server.url(""))
    };
    providers::openai(client(&ClientOptions::default()), options)
}

fn request(operation: &str, payload: &Value) -> Request {
    serde_json::from_value(json!({"operation": operation, "payload": payload})).unwrap()
}

fn speak() -> Request {
    request("text_to_speech", &json!({"input": "Hello."}))
}

fn draw() -> Request {
    request("image_generation", &json!({"prompt": "a fox"}))
}

async fn ask(answer: ScriptedResponse, request: Request, spill: &SpillStore) -> Result<Answered, Error> {
    let server = MockServer::with_responses(answer);
    back_end(&server, spill).call(Arc::new(request)).await
}

/// This many bytes without repetition.
fn noise(head: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = head.to_vec();
    let tail = (0..length as u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]);
    bytes.extend(tail);
    bytes
}

fn sound(length: usize) -> Vec<u8> {
    noise(b"OggS", length)
}

fn picture(length: usize) -> Vec<u8> {
    noise(b"\x89PNG\r\n\x1a\n", length)
}

/// As servers encode it: some escape every slash.
fn drawn(pictures: &[Vec<u8>]) -> String {
    let data = pictures.iter().map(|bytes| {
        let text = Base64::from_bytes(bytes).into_string().replace('/', "\\/");
        format!("{{\"b64_json\": \"{text}\", \"revised_prompt\": \"a \\\"fox\\\"\"}}")
    });
    let data: Vec<_> = data.collect();
    format!(
        "{{\"created\": 1, \"data\": [{}], \"usage\": {{\"output_tokens\": 7}}}}\n",
        data.join(",")
    )
}

fn json_of(text: &str) -> ScriptedResponse {
    ScriptedResponse::good("application/json", text)
}

fn bytes(source: &MediaSource) -> Vec<u8> {
    let text = match source {
        MediaSource::Inline(data) => data.clone(),
        MediaSource::Handle(held) => held.to_base64().unwrap(),
        other => panic!("{other:?}"),
    };
    text.decode().unwrap()
}

fn is_held(source: &MediaSource) -> bool {
    matches!(source, MediaSource::Handle(_))
}

#[test]
fn audio_is_stored_in_memory_or_spilled_by_size() {
    run(async {
        for length in [10, THRESHOLD as usize - 4, THRESHOLD as usize - 3, 3_000_000] {
            let (spill, sound) = (roomy(), sound(length));
            let answer = ScriptedResponse::good("application/octet-stream", &sound);
            let answered = ask(answer, speak(), &spill).await.unwrap();
            let ResponsePayload::Speech(speech) = &answered.payload else {
                panic!("{answered:?}")
            };
            let is_large = sound.len() as u64 > THRESHOLD;
            assert_eq!(is_held(&speech.audio.source), is_large, "{length}");
            assert_eq!(spill.used_bytes(), if is_large { sound.len() as u64 } else { 0 });
            assert!(bytes(&speech.audio.source) == sound, "{length}");
            assert_eq!(
                speech.audio.mime.as_deref(),
                Some("audio/ogg"),
                "seen in its bytes"
            );
            drop(answered);
            assert_eq!(spill.used_bytes(), 0);
        }
    });
}

#[test]
fn images_are_stored_in_memory_or_spilled_by_size() {
    run(async {
        let spill = roomy();
        let pictures = [picture(10), picture(1_000_000), picture(70_000), picture(60_000)];
        let answered = ask(json_of(&drawn(&pictures)), draw(), &spill).await.unwrap();
        let ResponsePayload::Image(response) = &answered.payload else {
            panic!("{answered:?}")
        };
        let held: Vec<_> = response.images.iter().map(|one| is_held(&one.source)).collect();
        assert_eq!(held, [false, true, true, false]);
        for (image, picture) in response.images.iter().zip(&pictures) {
            assert!(bytes(&image.source) == *picture);
            assert_eq!(image.mime_or_sniffed().as_deref(), Some("image/png"));
        }
        assert_eq!(spill.used_bytes(), (pictures[1].len() + pictures[2].len()) as u64);
        assert_eq!(
            answered.usage.as_ref().and_then(|usage| usage.output_tokens),
            Some(7)
        );
        assert!(answered.adaptations.is_empty());
        drop(answered);
        assert_eq!(spill.used_bytes(), 0);
    });
}

/// With a high threshold everything is in memory, and the raw response is complete.
#[test]
fn high_threshold_keeps_images_in_memory() {
    run(async {
        let spill = SpillStore::new(None, u64::MAX, 0);
        let mut asked = draw();
        asked.extra.insert(String::from("raw"), json!(true));
        let picture = picture(2_000_000);
        let text = drawn(std::slice::from_ref(&picture));
        let answered = ask(json_of(&text), asked, &spill).await.unwrap();
        let ResponsePayload::Image(response) = &answered.payload else {
            panic!("{answered:?}")
        };
        let source = &response.images[0].source;
        assert!(!is_held(source) && bytes(source) == picture);
        assert!(answered.raw == serde_json::from_str(&text).ok());
        assert!(answered.adaptations.is_empty());
    });
}

#[test]
fn raw_response_references_large_image() {
    run(async {
        let spill = roomy();
        let mut asked = draw();
        asked.extra.insert(String::from("raw"), json!(true));
        let text = drawn(&[picture(10), picture(1_000_000)]);
        let answered = ask(json_of(&text), asked, &spill).await.unwrap();
        let raw = answered.raw.as_ref().unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(raw["data"][0], expected["data"][0], "small images are unchanged");
        assert_eq!(raw["usage"], expected["usage"]);
        let name = raw["data"][1]["b64_json"].as_str().unwrap();
        let image = MediaHandle::from_bytes(picture(1_000_000)).unwrap();
        assert_eq!(name, format!("sha256:{}", image.checksum().value));
        assert_eq!(answered.adaptations[0].pointer, "/extra/raw");
    });
}

fn half(text: &str) -> &str {
    text.get(..text.len() / 2).unwrap()
}

/// A response that is shorter than announced.
fn cut(content_type: &str, body: &[u8]) -> ScriptedResponse {
    let length = (body.len() + 1).to_string();
    let headers = [
        ("content-type", content_type),
        ("content-length", length.as_str()),
    ];
    ScriptedResponse::response("200 OK", &headers, body)
}

fn announced(content_type: &str, length: usize) -> ScriptedResponse {
    let length = length.to_string();
    let headers = [
        ("content-type", content_type),
        ("content-length", length.as_str()),
    ];
    ScriptedResponse::response("200 OK", &headers, "RIFF")
}

#[test]
fn failures_are_one_error_and_free_the_spill_store() {
    let (large, text) = (sound(1_000_000), drawn(&[picture(1_000_000)]));
    let half = half(&text);
    let wrong = text.replacen("\\/", "\\/=", 1);
    let elsewhere = text
        .replacen("\"data\"", "\"more\"", 1)
        .replacen('{', "{\"data\": [],", 1);
    let endless =
        ScriptedResponse::good("audio/wav", "RIFF").repeat(vec![7; 1 << 20], MEDIA_ANSWER_BYTES_MAX >> 20);
    let cases = [
        ("sound cut", speak(), cut("audio/wav", &large), ErrorKind::Network),
        (
            "picture cut",
            draw(),
            cut("application/json", half.as_bytes()),
            ErrorKind::Network,
        ),
        (
            "picture that ends",
            draw(),
            json_of(half),
            ErrorKind::InvalidResponse,
        ),
        ("no base64", draw(), json_of(&wrong), ErrorKind::InvalidResponse),
        (
            "picture elsewhere",
            draw(),
            json_of(&elsewhere),
            ErrorKind::InvalidResponse,
        ),
        (
            "sound announced too large",
            speak(),
            announced("audio/wav", MEDIA_ANSWER_BYTES_MAX + 1),
            ErrorKind::AnswerTooLarge,
        ),
        (
            "picture announced too large",
            draw(),
            announced("application/json", MEDIA_ANSWER_BYTES_MAX + 1),
            ErrorKind::AnswerTooLarge,
        ),
        ("sound too large", speak(), endless, ErrorKind::AnswerTooLarge),
    ];
    run(async {
        for (name, request, answer, kind) in cases {
            let spill = roomy();
            let error = ask(answer, request, &spill).await.unwrap_err();
            assert_eq!(
                (error.kind, error.phase),
                (kind, Phase::MidStream),
                "{name}: {error:?}"
            );
            assert_eq!(spill.used_bytes(), 0, "{name}");
        }
    });
}

#[test]
fn full_spill_store_is_an_internal_error() {
    let (large, text) = (sound(1_000_000), drawn(&[picture(1_000_000)]));
    let tight = SpillStore::new(None, THRESHOLD, 900_000);
    run(async {
        for (request, answer) in [
            (speak(), ScriptedResponse::good("audio/wav", &large)),
            (draw(), json_of(&text)),
        ] {
            let error = ask(answer, request, &tight).await.unwrap_err();
            // Failover would not help.
            assert_eq!(error.kind, ErrorKind::Internal, "{error:?}");
            assert_eq!(error.provider_code.as_deref(), Some("E4000"));
            assert!(
                error.message.contains("spill store is full") && error.retry_after_ms.is_some(),
                "{error:?}"
            );
            assert_eq!(tight.used_bytes(), 0);
        }
        // The rejected media released its space.
        let fits = sound(800_000);
        assert!(
            ask(ScriptedResponse::good("audio/wav", &fits), speak(), &tight)
                .await
                .is_ok()
        );
    });
}

#[test]
fn dropping_the_call_frees_the_spill_store() {
    let text = drawn(&[picture(1_000_000)]);
    let stall = |answer: ScriptedResponse| answer.pause(Duration::from_secs(600));
    run(async {
        for (request, answer) in [
            (
                speak(),
                stall(ScriptedResponse::good("audio/wav", sound(1_000_000))),
            ),
            (draw(), stall(json_of(half(&text)))),
        ] {
            let spill = roomy();
            let server = MockServer::with_responses(answer);
            let mut calls = JoinSet::new();
            calls.spawn(back_end(&server, &spill).call(Arc::new(request)));
            let wait = |until: fn(u64) -> bool| {
                let spill = spill.clone();
                let changed = async move {
                    while !until(spill.used_bytes()) {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                };
                tokio::time::timeout(Duration::from_secs(30), changed)
            };
            wait(|used| used > 0).await.expect("stored while it arrives");
            calls.abort_all();
            wait(|used| used == 0)
                .await
                .expect("released after the call was dropped");
        }
    });
}

/// Speech of a program is stored the same way from standard output and from an output file.
#[test]
fn large_speech_of_a_program_is_spilled() {
    let expected = [b"RIFF....WAVE".as_slice(), &[b'7'; 300_000]].concat();
    let long = "printf RIFF....WAVE; head -c 300000 /dev/zero | tr '\\0' 7";
    let printed = ["-c", long].map(String::from).to_vec();
    let file = format!("{{{{ {long}; }}}} > \"$1\"");
    let written = ["-c", &file, "sh", "{output}"].map(String::from).to_vec();
    run(async {
        for arguments in [printed, written] {
            let spill = SpillStore::new(None, THRESHOLD, 400_000);
            let options = CommandOptions::new("program", Operation::TextToSpeech, "/bin/sh", &arguments);
            let mut options = options.unwrap();
            options.environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
            options.spill = spill.clone();
            let program = CommandUpstream::new(options);
            let answered = program.call(Arc::new(speak())).await.unwrap();
            let ResponsePayload::Speech(speech) = &answered.payload else {
                panic!("{answered:?}")
            };
            assert_eq!(speech.audio.mime.as_deref(), Some("audio/wav"));
            assert_eq!(speech.audio.facts.size_bytes, Some(300_012));
            assert!(is_held(&speech.audio.source) && bytes(&speech.audio.source) == expected);
            assert_eq!(spill.used_bytes(), 300_012);
            let full = program.call(Arc::new(speak())).await.unwrap_err();
            assert_eq!(full.kind, ErrorKind::Internal, "{full:?}");
            assert_eq!(full.provider_code.as_deref(), Some("E4000"));
            assert_eq!(spill.used_bytes(), 300_012);
            drop(answered);
            assert_eq!(spill.used_bytes(), 0);
        }
    });
}
