//! Embeddings, images, transcriptions and speech against servers that respond as vendors do.

use std::sync::Arc;
use std::time::Duration;

use engine::port::{UnaryResponse as Answered, Upstream};
use futures::future::join_all;
use ir::media::MediaHandle;
use ir::{Error, ErrorKind, Media, MediaSource, Payload, Phase, Request, ResponsePayload};
use providers::{ClientOptions, HttpOptions, HttpUpstream, Timeouts};
use serde_json::{Value, json};
use testkit::fault::{FAULTS, Fault};
use testkit::http::{MockServer, ReceivedRequest, ScriptedResponse};

use crate::kinds::{KEY, Open, PATIENT, client, options, run};

const WAV: &[u8] = b"RIFF\x24\x00\x00\x00WAVEfmt ";

fn request(operation: &str, payload: &Value) -> Request {
    serde_json::from_value(json!({"operation": operation, "payload": payload})).unwrap()
}

fn back_end(open: Open, server: &MockServer) -> HttpUpstream {
    open(client(&ClientOptions::default()), options(&server.url("")))
}

fn good(body: &Value) -> ScriptedResponse {
    ScriptedResponse::good("application/json", body.to_string())
}

async fn ask(
    open: Open,
    answer: ScriptedResponse,
    request: Request,
) -> (Result<Answered, Error>, Vec<ReceivedRequest>) {
    let server = MockServer::with_responses(answer);
    let answered = back_end(open, &server).call(Arc::new(request)).await;
    (answered, server.received())
}

fn payload(answered: &Answered) -> Value {
    answered.payload.to_json().unwrap()
}

fn inline(mime: &str, bytes: &[u8]) -> Value {
    let data = ir::media::Base64::from_bytes(bytes);
    json!({"kind": "inline_base64", "mime": mime, "data": data.as_str()})
}

#[test]
fn embeddings_work_for_every_vendor() {
    let openai = json!({
        "object": "list", "model": "small",
        // Not every server preserves the order.
        "data": [
            {"object": "embedding", "index": 1, "embedding": [0.25, 2.0]},
            {"object": "embedding", "index": 0, "embedding": [0.5, -1.0]},
        ],
        "usage": {"prompt_tokens": 4, "total_tokens": 4}
    });
    let gemini = json!({"embeddings": [{"values": [0.5, -1.0]}, {"values": [0.25, 2.0]}]});
    let ollama = json!({"model": "small", "embeddings": [[0.5, -1.0], [0.25, 2.0]], "prompt_eval_count": 4});
    let cases: [(Open, _, _, _); 3] = [
        (providers::openai, openai, "/embeddings", Some(4)),
        (
            providers::gemini,
            gemini,
            "/v1beta/models/small:batchEmbedContents",
            None,
        ),
        (providers::ollama, ollama, "/api/embed", Some(4)),
    ];
    run(async {
        for (open, body, path, tokens) in cases {
            let asked = request("embeddings", &json!({"input": ["a", "b"]}));
            let (answered, calls) = ask(open, good(&body), asked).await;
            let answered = answered.unwrap();
            assert_eq!(calls[0].path(), path);
            let usage = answered.usage.as_ref().and_then(|usage| usage.input_tokens);
            assert_eq!(usage, tokens, "{path}");
            let vectors = payload(&answered);
            assert_eq!(vectors["embeddings"][0]["vector"], json!([0.5, -1.0]), "{path}");
            assert_eq!(vectors["embeddings"][1]["vector"], json!([0.25, 2.0]), "{path}");
        }
    });
}

#[test]
fn unsupported_operation_is_an_error() {
    run(async {
        let asked = request("embeddings", &json!({"input": "a"}));
        let (answered, calls) = ask(providers::anthropic, good(&json!({})), asked).await;
        assert_eq!(answered.unwrap_err().kind, ErrorKind::Unsupported);
        assert!(calls.is_empty());
    });
}

#[test]
fn missing_vectors_are_an_error() {
    run(async {
        let one = json!({"data": [{"index": 0, "embedding": [1.0]}]});
        let twice = json!({"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]});
        for body in [one, twice, json!({"data": [{"index": 0}]}), json!({})] {
            let asked = request("embeddings", &json!({"input": ["a", "b"]}));
            let (answered, _) = ask(providers::openai, good(&body), asked).await;
            assert_eq!(answered.unwrap_err().kind, ErrorKind::InvalidResponse, "{body}");
        }
    });
}

#[test]
fn raw_response_is_preserved_only_on_request() {
    run(async {
        let body = json!({"data": [{"index": 0, "embedding": [1.0]}], "mystery": 7});
        for wanted in [false, true] {
            let mut asked = request("embeddings", &json!({"input": "a"}));
            asked.extra.insert(String::from("raw"), json!(wanted));
            let (answered, _) = ask(providers::openai, good(&body), asked).await;
            assert_eq!(answered.unwrap().raw, wanted.then(|| body.clone()));
        }
    });
}

#[test]
fn generates_image_from_prompt() {
    run(async {
        let body = json!({
            "created": 1_700_000_000, "output_format": "png",
            "data": [{"b64_json": "iVBORw0KGgo="}],
            "usage": {"input_tokens": 9, "output_tokens": 272, "total_tokens": 281}
        });
        let asked = request(
            "image_generation",
            &json!({"prompt": "a fox", "n": 1, "size": "1024x1024"}),
        );
        let (answered, calls) = ask(providers::openai, good(&body), asked).await;
        assert_eq!(calls[0].path(), "/images/generations");
        let sent = json!({"model": "small", "prompt": "a fox", "n": 1, "size": "1024x1024"});
        assert_eq!(calls[0].json(), sent);
        let answered = answered.unwrap();
        assert_eq!(
            answered.usage.as_ref().and_then(|usage| usage.output_tokens),
            Some(272)
        );
        let drawn = payload(&answered);
        assert_eq!(drawn["images"][0]["data"], "iVBORw0KGgo=");
        assert_eq!(drawn["images"][0]["mime"], "image/png");
    });
}

#[test]
fn image_edit_is_sent_as_multipart() {
    run(async {
        let body = json!({"created": 1, "data": [{"url": "https://example.org/a.png"}]});
        let picture = inline("image/png", b"picture");
        let edit = json!({"prompt": "add a hat", "image": picture, "mask": inline("image/png", b"mask")});
        let (answered, calls) = ask(providers::openai, good(&body), request("image_generation", &edit)).await;
        assert!(answered.is_ok(), "{answered:?}");
        let call = &calls[0];
        assert_eq!(call.path(), "/images/edits");
        let kind = call.header("content-type").unwrap();
        assert!(kind.starts_with("multipart/form-data; boundary="), "{kind}");
        let text = call.text();
        for part in [
            "name=\"prompt\"\r\n\r\nadd a hat\r\n",
            "name=\"model\"\r\n\r\nsmall\r\n",
            "name=\"image\"; filename=\"image.png\"\r\ncontent-type: image/png\r\n\r\npicture\r\n",
            "name=\"mask\"; filename=\"mask.png\"\r\ncontent-type: image/png\r\n\r\nmask\r\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    });
}

#[test]
fn transcribes_audio_from_memory_and_media_handle() {
    run(async {
        let body = json!({
            "task": "transcribe", "language": "english", "duration": 1.5, "text": "Hello.",
            "segments": [{"id": 0, "start": 0.0, "end": 1.5, "text": " Hello."}],
            "usage": {"type": "duration", "seconds": 2}
        });
        let long = [WAV, &[7; 200_000]].concat();
        let audio = json!({"audio": inline("audio/wav", WAV), "language": "en", "timestamps": true});
        let here = request("speech_to_text", &audio);
        let mut there = here.clone();
        if let Payload::Transcription(asked) = &mut there.payload {
            let held = MediaHandle::from_bytes(long.clone()).unwrap();
            asked.audio = Media::new(MediaSource::Handle(held), Some(String::from("audio/wav")));
        }
        for (asked, bytes) in [(here, WAV.to_vec()), (there, long)] {
            let (answered, calls) = ask(providers::openai, good(&body), asked).await;
            let transcript = payload(&answered.unwrap());
            assert_eq!(transcript["text"], "Hello.");
            assert_eq!(transcript["segments"][0]["end"], 1.5);
            let call = &calls[0];
            assert_eq!(call.path(), "/audio/transcriptions");
            let holds = |part: &[u8]| call.body.windows(part.len()).any(|window| window == part);
            let file = b"name=\"file\"; filename=\"audio.wav\"\r\ncontent-type: audio/wav\r\n\r\n";
            assert!(
                holds(&[file.as_slice(), &bytes, b"\r\n--"].concat()),
                "{}",
                call.text()
            );
            assert!(holds(b"name=\"response_format\"\r\n\r\nverbose_json\r\n"));
            assert!(holds(b"name=\"timestamp_granularities[]\"\r\n\r\nsegment\r\n"));
            assert!(holds(b"name=\"language\"\r\n\r\nen\r\n"));
        }
    });
}

#[test]
fn synthesizes_speech() {
    run(async {
        let speech = json!({"input": "Hello.", "voice": "alloy", "format": "wav", "speed": 1.5});
        let answer = ScriptedResponse::good("audio/wav", WAV);
        let (answered, calls) = ask(providers::openai, answer, request("text_to_speech", &speech)).await;
        assert_eq!(calls[0].path(), "/audio/speech");
        let sent = json!({"model": "small", "input": "Hello.", "voice": "alloy", "response_format": "wav", "speed": 1.5});
        assert_eq!(calls[0].json(), sent);
        let answered = answered.unwrap();
        let ResponsePayload::Speech(sound) = &answered.payload else {
            panic!("{answered:?}")
        };
        assert_eq!(sound.audio.mime.as_deref(), Some("audio/wav"));
        let MediaSource::Inline(data) = &sound.audio.source else {
            panic!("{sound:?}")
        };
        assert_eq!(data.decode().unwrap(), WAV);
        let (answered, _) = ask(
            providers::openai,
            ScriptedResponse::good("audio/wav", ""),
            request("text_to_speech", &speech),
        )
        .await;
        assert_eq!(answered.unwrap_err().kind, ErrorKind::InvalidResponse);
    });
}

#[test]
fn unsupported_fields_are_recorded_or_rejected() {
    run(async {
        let answer = || good(&json!({"text": "Hello."}));
        let mut asked = request(
            "speech_to_text",
            &json!({"audio": inline("audio/wav", WAV), "diarization": true}),
        );
        let (answered, _) = ask(providers::openai, answer(), asked.clone()).await;
        let adaptations = answered.unwrap().adaptations;
        assert_eq!(adaptations[0].pointer, "/payload/diarization");
        asked.degradation = Some(ir::Degradation::Strict);
        let (answered, calls) = ask(providers::openai, answer(), asked).await;
        assert_eq!(answered.unwrap_err().kind, ErrorKind::Unsupported);
        assert!(calls.is_empty());
    });
}

#[test]
fn model_never_answers_under_another_name() {
    run(async {
        let mut asked = request("embeddings", &json!({"input": "a", "model": "large"}));
        let (answered, calls) = ask(providers::openai, good(&json!({})), asked.clone()).await;
        assert_eq!(answered.unwrap_err().kind, ErrorKind::NotEnabled);
        assert!(calls.is_empty());
        if let Payload::Embeddings(embeddings) = &mut asked.payload {
            embeddings.model = None;
        }
        let body = json!({"data": [{"index": 0, "embedding": [1.0]}]});
        let (answered, calls) = ask(providers::openai, good(&body), asked).await;
        assert!(answered.is_ok(), "{answered:?}");
        assert_eq!(calls[0].json()["model"], "small");
    });
}

fn operations() -> [Request; 4] {
    [
        request("embeddings", &json!({"input": "a"})),
        request("image_generation", &json!({"prompt": "a"})),
        request("speech_to_text", &json!({"audio": inline("audio/wav", WAV)})),
        request("text_to_speech", &json!({"input": "a"})),
    ]
}

/// The deviation from the table, if any. A stream is not a valid response here.
async fn hold(fault: &Fault, request: Request) -> Option<String> {
    let operation = request.operation().as_str();
    let broken = fault.start(ir::Dialect::OpenaiChat);
    // Short timeouts for timeout faults only.
    let timeouts = match (fault.kind, fault.status, fault.phase) {
        (ErrorKind::Timeout, None, Phase::BeforeFirstByte) => Timeouts {
            first_byte: Duration::from_millis(500),
            total: Duration::from_secs(2),
            ..PATIENT
        },
        _ => PATIENT,
    };
    let back_end = providers::openai(
        client(&ClientOptions::default()),
        HttpOptions {
            timeouts,
            ..options(&broken.url)
        },
    );
    let error = back_end.call(Arc::new(request)).await.unwrap_err();
    let what = format!("{} in {operation}: {error:?}", fault.name);
    assert!(!error.message.contains(KEY), "{what}");
    let is_stream = fault.name.contains("stream") || fault.name.contains("event");
    let (kind, phase) = match is_stream {
        true => (ErrorKind::InvalidResponse, Phase::BeforeFirstByte),
        false => (fault.kind, fault.phase),
    };
    let status = error.status == fault.status || fault.name == "error inside a 200";
    ((error.kind, error.phase) != (kind, phase) || !status).then_some(what)
}

#[test]
fn every_fault_of_every_operation_is_one_error() {
    run(async {
        let all = FAULTS
            .iter()
            .flat_map(|fault| operations().map(|request| hold(fault, request)));
        let wrong: Vec<_> = join_all(all).await.into_iter().flatten().collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}
