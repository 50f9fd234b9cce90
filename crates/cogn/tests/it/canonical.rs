//! `POST /v1/canonical` through `cogn serve`: every operation in canonical envelopes, for back-ends of any
//! dialect, and the limits on what a request may choose.

use ir::media::Base64;
use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};

use crate::harness::{Server, Stage};
use crate::openai_unary::{ALL, back_end, json_of, transcript, vectors, vendor, wav};

const PICTURE: &[u8] = include_bytes!("../../../../examples/modules/image-analyzer/assets/sunset.png");

fn serve(stage: &Stage, upstream: &MockServer, more: &str) -> Server {
    let config = back_end(
        "vendor",
        &upstream.url(""),
        &format!("operations = {ALL}\n{more}"),
    );
    stage.serve_with(&["--config", &stage.config(&config)], &[])
}

pub(crate) async fn ask(server: &Server, request: &Value) -> (u16, Value) {
    let response = server
        .post("/v1/canonical")
        .body(request.to_string())
        .send()
        .await;
    let response = response.unwrap();
    (response.status().as_u16(), json_of(response).await)
}

fn sound() -> Value {
    let data = Base64::from_bytes(&wav(1));
    json!({"kind": "inline_base64", "mime": "audio/wav", "data": data.as_str()})
}

#[tokio::test]
async fn every_operation_uses_one_envelope() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let cases = [
        ("embeddings", json!({"model": "m", "input": "a"})),
        ("image_generation", json!({"model": "m", "prompt": "a fox"})),
        (
            "speech_to_text",
            json!({"model": "m", "audio": sound(), "timestamps": true}),
        ),
        (
            "text_to_speech",
            json!({"model": "m", "input": "Hi", "format": "wav"}),
        ),
    ];
    for (operation, payload) in cases {
        let request = json!({
            "version": 1, "request_id": format!("req-{operation}"), "operation": operation,
            "requirements": {"required_ops": [operation], "required_transports": ["http"]},
            "payload": payload
        });
        let (status, answer) = ask(&server, &request).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["version"], 1);
        assert_eq!(answer["request_id"], format!("req-{operation}"));
        assert_eq!(answer["operation"], operation);
        assert_eq!(answer["backend"]["name"], "vendor");
        assert_eq!(answer["backend"]["instance"], "vendor-1");
        assert_eq!(answer["backend"]["attempts"], 1);
        assert!(answer["backend"]["latency_ms"].is_u64());
        assert!(answer.get("raw").is_none() && answer["result"].get("error").is_none());
        // The response can be parsed with the types of the crate `ir`.
        let read: ir::Response = serde_json::from_value(answer.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), answer);
        let payload = &answer["result"]["payload"];
        match operation {
            "embeddings" => assert_eq!(
                payload["embeddings"][0]["vector"],
                vectors(1)["data"][0]["embedding"]
            ),
            "image_generation" => assert_eq!(payload["images"][0]["kind"], "inline_base64"),
            "speech_to_text" => assert_eq!(payload["segments"], transcript()["segments"]),
            _ => {
                assert_eq!(payload["audio"]["mime"], "audio/wav");
                let data = Base64::from_text(payload["audio"]["data"].as_str().unwrap());
                assert_eq!(data.decode().unwrap(), wav(1));
            }
        }
    }
}

/// The examples of the canonical documents are parsed as written. The files they refer to do not exist here,
/// so the request is refused for that reason.
#[tokio::test]
async fn examples_of_the_documents_are_parsed_as_written() {
    let (stage, upstream) = (Stage::new(), vendor());
    let more = "features = [\"supports_image_input\", \"supports_timestamps\", \"supports_language\"]";
    let server = serve(&stage, &upstream, more);
    let transcription = json!({
        "version": 1,
        "request_id": "req-123",
        "operation": "speech_to_text",
        "requirements": {
            "required_ops": ["speech_to_text"],
            "required_features": ["supports_audio_input"],
            "required_transports": ["http"]
        },
        "payload": {
            "model": "whisper-1",
            "audio": {"kind": "sms_file", "uri": "sms+file://01JFK...ABCD", "mime": "audio/wav"},
            "language": "zh",
            "timestamps": true
        }
    });
    let (status, answer) = ask(&server, &transcription).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(answer["request_id"], "req-123");
    assert_eq!(answer["result"]["error"]["code"], "InvalidRequest");
    assert_eq!(answer["result"]["error"]["provider_code"], "E1019");
    // With inline audio in that field the rest of the request is valid unchanged.
    let mut whole = transcription;
    whole["payload"]["audio"] = sound();
    let (status, answer) = ask(&server, &whole).await;
    assert_eq!(status, 200, "{answer}");
    let call = upstream.received().pop().unwrap().text();
    assert!(call.contains("name=\"model\"\r\n\r\nwhisper-1\r\n"), "{call}");
    assert!(call.contains("name=\"language\"\r\n\r\nzh\r\n"), "{call}");

    let mut seen = json!({
        "operation": "chat_completions",
        "payload": {
            "model": "gpt-4o",
            "messages": [{
                "role": "user",
                "content_parts": [
                    {"type": "text", "text": "描述这张图片"},
                    {
                        "type": "image",
                        "image": {"kind": "sms_file", "uri": "sms+file://01J...", "mime": "image/jpeg"}
                    }
                ]
            }]
        }
    });
    let (status, answer) = ask(&server, &seen).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(answer["result"]["error"]["code"], "InvalidRequest");
    let data = Base64::from_bytes(PICTURE);
    let picture = json!({"kind": "inline_base64", "mime": "image/png", "data": data.as_str()});
    seen["payload"]["messages"][0]["content_parts"][1]["image"] = picture;
    let (status, answer) = ask(&server, &seen).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["result"]["payload"]["content_parts"][0]["text"],
        "A sunset."
    );
    assert_eq!(answer["result"]["payload"]["usage"]["input_tokens"], 7);
    let call = upstream.received().pop().unwrap().json();
    assert_eq!(call["messages"][0]["content"][0]["text"], "描述这张图片");
    let url = call["messages"][0]["content"][1]["image_url"]["url"]
        .as_str()
        .unwrap();
    assert!(url.starts_with("data:image/png;base64,"), "{url}");
}

#[tokio::test]
async fn invalid_field_is_refused_by_name() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let good = json!({"request_id": "r", "operation": "embeddings", "payload": {"input": "a"}});
    let with = |key: &str, value: Value| {
        let mut request = good.clone();
        request[key] = value;
        request
    };
    let cases = [
        (with("version", json!(9)), "InvalidRequest", "supported: [1]"),
        (with("version", json!("1")), "InvalidRequest", "supported: [1]"),
        (
            with("operation", json!("video_generation")),
            "MissingCapabilities",
            "unknown operation",
        ),
        (with("operation", json!(7)), "InvalidRequest", "`operation`"),
        (with("payload", json!({"texts": "a"})), "InvalidRequest", "input"),
        (
            with("policy", json!("magic")),
            "InvalidRequest",
            "unknown routing policy",
        ),
        (
            with("requirements", json!({"required_ops": ["text_to_speech"]})),
            "InvalidRequest",
            "required_ops",
        ),
        (
            with("requirements", json!({"required_features": ["supports_magic"]})),
            "MissingCapabilities",
            "no back-end",
        ),
        (
            json!({"request_id": "r", "operation": "realtime_voice", "payload": {}}),
            "MissingCapabilities",
            "realtime_voice",
        ),
        (json!([]), "InvalidRequest", "not an object"),
    ];
    for (request, code, part) in cases {
        let (status, answer) = ask(&server, &request).await;
        assert_eq!(status, 400, "{request}: {answer}");
        let error = &answer["result"]["error"];
        assert_eq!(error["code"], code, "{request}: {answer}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(part), "{request}: {message}");
        if request.is_object() {
            assert_eq!(answer["request_id"], "r");
        }
    }
    let response = server.post("/v1/canonical").body("{").send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(
        json_of(response).await["result"]["error"]["code"],
        "InvalidRequest"
    );
    assert!(upstream.received().is_empty());
}

#[tokio::test]
async fn adaptations_are_reported_and_refused_in_strict_mode() {
    let (stage, upstream) = (Stage::new(), vendor());
    let features = r#"features = ["supports_formats"]"#;
    let server = serve(&stage, &upstream, features);
    let mut speech = json!({
        "operation": "text_to_speech",
        "payload": {"model": "m", "input": "<speak>Hi<break/>you</speak>", "ssml": true, "voice": "nova"}
    });
    let (status, answer) = ask(&server, &speech).await;
    assert_eq!(status, 200, "{answer}");
    let places: Vec<&str> = answer["adaptations"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["pointer"].as_str())
        .collect();
    assert_eq!(places, ["/payload/voice", "/payload/ssml"]);
    assert_eq!(
        upstream.received()[0].json(),
        json!({"model": "m", "input": "Hi you"})
    );

    speech["degradation"] = json!("strict");
    let (status, answer) = ask(&server, &speech).await;
    assert_eq!(status, 400, "{answer}");
    let error = &answer["result"]["error"];
    assert_eq!(error["code"], "MissingCapabilities");
    let why = error["rejected_reasons"]["vendor"].as_str().unwrap();
    assert!(why.starts_with("lacks supports_"), "{answer}");
    assert_eq!(upstream.received().len(), 1);
}

#[tokio::test]
async fn unsupported_mask_and_image_are_dropped_only_when_allowed() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "features = []");
    let data = Base64::from_bytes(PICTURE);
    let picture = json!({"kind": "inline_base64", "mime": "image/png", "data": data.as_str()});
    let mut edit = json!({
        "operation": "image_generation",
        "payload": {"model": "m", "prompt": "a hat", "image": picture, "mask": picture}
    });
    // The image itself is not dropped without permission.
    let (status, answer) = ask(&server, &edit).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(answer["result"]["error"]["code"], "MissingCapabilities");
    edit["degradation"] = json!("allow");
    let (status, answer) = ask(&server, &edit).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["adaptations"].as_array().map(Vec::len),
        Some(2),
        "{answer}"
    );
    let call = upstream.received().pop().unwrap();
    assert_eq!(call.path(), "/v1/images/generations");
    assert_eq!(call.json(), json!({"model": "m", "prompt": "a hat"}));
}

#[tokio::test]
async fn request_chooses_backend_within_host_limits() {
    let (stage, upstream) = (Stage::new(), vendor());
    let other = vendor();
    let operations = "operations = [\"embeddings\"]";
    let config = format!(
        "[routing]\ndeny = [\"secret\"]\n{}{}{}",
        back_end("one", &upstream.url(""), operations),
        back_end("two", &other.url(""), operations),
        back_end("secret", &other.url(""), operations),
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let ask = async |more: Value| {
        let mut request = json!({"operation": "embeddings", "payload": {"model": "m", "input": "a"}});
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        ask(&server, &request).await
    };
    for _ in 0..4 {
        let (_, answer) = ask(json!({"routing": {"backend": "two"}})).await;
        assert_eq!(answer["backend"]["name"], "two");
        let (_, answer) = ask(json!({"routing": {"backend_denylist": ["two"]}})).await;
        assert_eq!(answer["backend"]["name"], "one");
    }
    let (status, answer) = ask(json!({"routing": {"backend_allowlist": ["secret"]}})).await;
    assert_eq!(status, 503, "{answer}");
    assert_eq!(
        answer["result"]["error"]["rejected_reasons"]["secret"],
        "on the deny-list"
    );
    let (status, answer) = ask(json!({"policy": {"name": "hedged", "k": 2}, "extra": {"raw": true}})).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.get("raw").is_none());
    let places: Vec<&Value> = answer["adaptations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| &one["pointer"])
        .collect();
    assert_eq!(places, ["/policy", "/extra/raw"]);
}

#[tokio::test]
async fn raw_response_is_returned_if_host_allows() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "[server]\nraw_answers = true");
    let mut request = json!({"operation": "embeddings", "payload": {"model": "m", "input": "a"}});
    let (_, answer) = ask(&server, &request).await;
    assert!(answer.get("raw").is_none());
    request["extra"] = json!({"raw": true});
    let (_, answer) = ask(&server, &request).await;
    assert_eq!(answer["raw"], vectors(1));
}

#[tokio::test]
async fn timeout_ms_is_enforced() {
    let stage = Stage::new();
    let upstream =
        MockServer::with_responses(ScriptedResponse::nothing().pause(std::time::Duration::from_secs(30)));
    let server = serve(&stage, &upstream, "");
    let request =
        json!({"operation": "embeddings", "timeout_ms": 200, "payload": {"model": "m", "input": "a"}});
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 504, "{answer}");
    assert_eq!(answer["result"]["error"]["code"], "Timeout");
}

const REPLY: &str = "The capital of France is Paris.";

fn chat(more: &Value) -> Value {
    let mut payload = json!({"model": "m", "messages": [{"role": "user", "content": "What is it?"}]});
    for (key, value) in more.as_object().unwrap() {
        payload[key] = value.clone();
    }
    json!({"operation": "chat_completions", "request_id": 17, "payload": payload})
}

#[tokio::test]
async fn conversation_is_returned_whole_or_as_events() {
    let stage = Stage::new();
    let script = stage.script("talker", &json!([{"reply": REPLY, "chunk_bytes": 5}]));
    let server = stage.serve(&[&script]);
    let (status, answer) = ask(&server, &chat(&json!({}))).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["request_id"], "17");
    assert_eq!(answer["result"]["payload"]["content_parts"][0]["text"], REPLY);
    assert_eq!(answer["result"]["payload"]["finish_reason"], "stop");

    let streamed = chat(&json!({"generation": {"stream": true}}));
    let by_payload = server.post("/v1/canonical").body(streamed.to_string());
    let plain = chat(&json!({})).to_string();
    let by_header = server
        .post("/v1/canonical")
        .header("accept", "text/event-stream")
        .body(plain.clone());
    let lines = server
        .post("/v1/canonical")
        .header("accept", "application/x-ndjson")
        .body(plain);
    for (request, prefix, kind) in [
        (by_payload, "data: ", "text/event-stream"),
        (by_header, "data: ", "text/event-stream"),
        (lines, "", "application/x-ndjson"),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], kind);
        assert!(response.headers().contains_key("x-cogn-run"));
        let text = response.text().await.unwrap();
        let mut fold = ir::Fold::new();
        let mut count = 0;
        for line in text.lines().filter(|line| !line.is_empty()) {
            let event = line.strip_prefix(prefix).expect("an event");
            fold.push(serde_json::from_str(event).unwrap());
            count += 1;
        }
        assert!(count > 5, "{text}");
        assert_eq!(fold.finish().unwrap().text(), REPLY);
    }
}

#[tokio::test]
async fn interrupted_conversation_ends_in_one_error() {
    let stage = Stage::new();
    let script = stage.script(
        "dying",
        &json!([{"reply": REPLY, "chunk_bytes": 5, "cut_after_bytes": 12}]),
    );
    let server = stage.serve(&[&script]);
    let (status, answer) = ask(&server, &chat(&json!({}))).await;
    assert_eq!(status, 502, "{answer}");
    assert_eq!(answer["result"]["error"]["code"], "BackendError");
    let request = server
        .post("/v1/canonical")
        .header("accept", "application/x-ndjson");
    let text = request.body(chat(&json!({})).to_string()).send().await.unwrap();
    let text = text.text().await.unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let ends: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "finish" || event["type"] == "error")
        .collect();
    assert_eq!(ends.len(), 1, "{text}");
    assert_eq!(events.last().unwrap()["type"], "error", "{text}");
}

#[tokio::test]
async fn field_of_wrong_type_is_named() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let request = json!({"request_id": "r", "operation": "chat_completions", "payload": {
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "generation": {"temperature": "hot"}
    }});
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 400, "{answer}");
    let message = answer["result"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("`payload.generation.temperature`"), "{message}");
    assert!(upstream.received().is_empty());
}
