//! Embeddings, images, transcriptions and speech through `cogn serve`, requested as OpenAI's clients do, with
//! mock vendor servers as back-ends.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use testkit::http::{MockServer, ReceivedRequest, ScriptedResponse};

use crate::harness::{Server, Stage};
use crate::serve_recipes::play;

const PICTURE: &[u8] = include_bytes!("../../../../examples/modules/image-analyzer/assets/sunset.png");

/// Silence of this many seconds.
pub(crate) fn wav(seconds: u32) -> Vec<u8> {
    let samples = vec![0_u8; 16_000 * seconds as usize];
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"RIFF");
    bytes.extend_from_slice(&(36 + samples.len() as u32).to_le_bytes());
    bytes.extend_from_slice(b"WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00");
    bytes.extend_from_slice(&8_000_u32.to_le_bytes());
    bytes.extend_from_slice(&16_000_u32.to_le_bytes());
    bytes.extend_from_slice(b"\x02\x00\x10\x00data");
    bytes.extend_from_slice(&(samples.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&samples);
    bytes
}

pub(crate) fn vectors(count: usize) -> Value {
    let data: Vec<Value> = (0..count)
        .map(|index| json!({"object": "embedding", "index": index, "embedding": [0.1, -2.5, index]}))
        .collect();
    json!({"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 3, "total_tokens": 3}})
}

pub(crate) fn transcript() -> Value {
    json!({
        "task": "transcribe", "language": "english", "duration": 1.0, "text": "Hello there.",
        "segments": [{"id": 0, "start": 0.0, "end": 1.0, "text": " Hello there."}],
        "usage": {"type": "duration", "seconds": 1}
    })
}

/// A mock vendor server for every operation.
pub(crate) fn vendor() -> MockServer {
    MockServer::with_responder(|_, asked| match asked.path() {
        "/v1/embeddings" => {
            let texts = asked.json()["input"].as_array().map_or(1, Vec::len);
            json_answer(&vectors(texts))
        }
        "/v1/images/generations" | "/v1/images/edits" => json_answer(
            &json!({"created": 1, "output_format": "png", "data": [{"b64_json": "iVBORw0KGgo="}],
                "usage": {"input_tokens": 5, "output_tokens": 100, "total_tokens": 105}}),
        ),
        "/v1/audio/transcriptions" => json_answer(&transcript()),
        "/v1/audio/speech" => ScriptedResponse::good("audio/wav", wav(1)),
        "/v1/chat/completions" => json_answer(&json!({
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "A sunset."}}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        })),
        _ => ScriptedResponse::response("404 Not Found", &[], "{}"),
    })
}

pub(crate) fn json_answer(body: &Value) -> ScriptedResponse {
    ScriptedResponse::good("application/json", body.to_string())
}

pub(crate) const ALL: &str =
    r#"["embeddings", "image_generation", "speech_to_text", "text_to_speech", "chat_completions"]"#;

pub(crate) fn back_end(name: &str, url: &str, more: &str) -> String {
    format!("[[backends]]\nname = \"{name}\"\nkind = \"openai\"\nbase_url = \"{url}/v1\"\n{more}\n")
}

fn serve(stage: &Stage, upstream: &MockServer, more: &str) -> Server {
    let config = back_end(
        "vendor",
        &upstream.url(""),
        &format!("operations = {ALL}\n{more}"),
    );
    let config = stage.config(&config);
    stage.serve_with(&["--config", &config], &[])
}

pub(crate) async fn json_of(response: reqwest::Response) -> Value {
    let text = response.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn post(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let response = server.post(path).body(body.to_string()).send().await.unwrap();
    (response.status().as_u16(), json_of(response).await)
}

/// A multipart form as clients send it: files first, each with its field name.
pub(crate) fn form(
    request: reqwest::RequestBuilder,
    files: &[(&str, &[u8])],
    fields: &[(&str, &str)],
) -> reqwest::RequestBuilder {
    let mut body = Vec::new();
    for (name, bytes) in files {
        let head = format!(
            "--border\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a b.bin\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    for (name, value) in fields {
        let part = format!("--border\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(b"--border--\r\n");
    let request = request.header("content-type", "multipart/form-data; boundary=border");
    request.body(body)
}

fn last(upstream: &MockServer) -> ReceivedRequest {
    upstream.received().pop().expect("it was asked")
}

#[tokio::test]
async fn vectors_are_returned_in_requested_format() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let body = json!({"model": "m", "input": ["a", "b"]});
    let response = server
        .post("/v1/embeddings")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-cogn-backend"], "vendor");
    assert_eq!(response.headers()["x-cogn-attempts"], "1");
    assert!(response.headers().contains_key("x-cogn-run"));
    let answer = json_of(response).await;
    assert_eq!(answer, vectors(2), "as the vendor returned it");

    // The vendor returns numbers for any requested format; the gateway converts them.
    let (_, answer) = post(
        &server,
        "/v1/embeddings",
        &json!({"model": "m", "input": "a", "encoding_format": "base64"}),
    )
    .await;
    let floats: Vec<u8> = [0.1_f32, -2.5, 0.0]
        .iter()
        .flat_map(|float| float.to_le_bytes())
        .collect();
    let expected = ir::media::Base64::from_bytes(&floats);
    assert_eq!(answer["data"][0]["embedding"], expected.as_str());
}

#[tokio::test]
async fn token_lists_are_sent_only_where_supported() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let body = json!({"model": "m", "input": [[1, 2, 3]]});
    let (status, answer) = post(&server, "/v1/embeddings", &body).await;
    assert_eq!(status, 400, "{answer}");
    assert!(upstream.received().is_empty());
    drop(server);
    let more = "features = [\"supports_token_input\", \"supports_batch\"]";
    let server = serve(&stage, &upstream, more);
    let (status, answer) = post(&server, "/v1/embeddings", &body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(last(&upstream).json()["input"], json!([[1, 2, 3]]));
}

#[tokio::test]
async fn batch_is_split_for_backend_without_batch_support() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "features_disabled = [\"supports_batch\"]");
    let body = json!({"model": "m", "input": ["a", "b", "c"]});
    let (status, answer) = post(&server, "/v1/embeddings", &body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"].as_array().map(Vec::len), Some(3));
    assert_eq!(answer["data"][2]["index"], 2);
    assert_eq!(answer["usage"]["prompt_tokens"], 9);
    assert_eq!(upstream.received().len(), 3);
}

#[tokio::test]
async fn images_are_generated_and_edited() {
    let (stage, upstream) = (Stage::new(), vendor());
    let features = "features = [\"supports_image_input\", \"supports_mask\"]";
    let server = serve(&stage, &upstream, features);
    let body = json!({"model": "m", "prompt": "a fox"});
    let (status, answer) = post(&server, "/v1/images/generations", &body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"][0]["b64_json"], "iVBORw0KGgo=");
    assert_eq!(answer["usage"]["output_tokens"], 100);

    let request = form(
        server.post("/v1/images/edits"),
        &[("image[]", PICTURE), ("mask", PICTURE)],
        &[("model", "m"), ("prompt", "add a hat")],
    );
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    let call = last(&upstream);
    assert_eq!(call.path(), "/v1/images/edits");
    let text = call.text();
    for part in [
        "name=\"image\"; filename=\"image.png\"",
        "name=\"mask\"",
        "add a hat",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

async fn transcribe(server: &Server, sound: &[u8], fields: &[(&str, &str)]) -> reqwest::Response {
    let request = server.post("/v1/audio/transcriptions");
    form(request, &[("file", sound)], fields).send().await.unwrap()
}

/// A request for bytes gets bytes or an error with the reason: an address of this machine is never fetched.
#[tokio::test]
async fn images_are_returned_in_requested_format() {
    let stage = Stage::new();
    let upstream = MockServer::with_responses(json_answer(
        &json!({"created": 1, "data": [{"url": "http://127.0.0.1:9/a.png"}]}),
    ));
    let server = serve(&stage, &upstream, "");
    let mut body = json!({"model": "m", "prompt": "a fox", "response_format": "url"});
    let (status, answer) = post(&server, "/v1/images/generations", &body).await;
    assert_eq!(
        (status, &answer["data"][0]["url"]),
        (200, &json!("http://127.0.0.1:9/a.png"))
    );
    body["response_format"] = json!("b64_json");
    let (status, answer) = post(&server, "/v1/images/generations", &body).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (502, &json!("E1012")),
        "{answer}"
    );
    drop(server);
    let drawn = vendor();
    let server = serve(&stage, &drawn, "");
    body["response_format"] = json!("url");
    let (_, answer) = post(&server, "/v1/images/generations", &body).await;
    assert_eq!(
        answer["data"][0]["url"], "data:image/png;base64,iVBORw0KGgo=",
        "{answer}"
    );
}

#[tokio::test]
async fn audio_is_transcribed_in_every_format() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let forms = [
        ("text", "Hello there.\n", "text/plain; charset=utf-8"),
        (
            "srt",
            "1\n00:00:00,000 --> 00:00:01,000\nHello there.\n\n",
            "application/x-subrip; charset=utf-8",
        ),
        (
            "vtt",
            "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nHello there.\n\n",
            "text/vtt; charset=utf-8",
        ),
    ];
    for (form, expected, kind) in forms {
        let response = transcribe(&server, &wav(1), &[("model", "m"), ("response_format", form)]).await;
        assert_eq!(response.headers()["content-type"], kind);
        assert_eq!(response.text().await.unwrap(), expected);
    }
    let whole = transcribe(
        &server,
        &wav(1),
        &[("model", "m"), ("response_format", "verbose_json")],
    )
    .await;
    assert_eq!(json_of(whole).await, transcript());
    let plain = transcribe(&server, &wav(1), &[("model", "m"), ("language", "en")]).await;
    assert_eq!(json_of(plain).await["text"], "Hello there.");
    let call = last(&upstream).text();
    assert!(
        call.contains("name=\"language\"\r\n\r\nen\r\n") && !call.contains("response_format"),
        "{call}"
    );
    let events = transcribe(&server, &wav(1), &[("model", "m"), ("stream", "true")]).await;
    let events = events.text().await.unwrap();
    assert!(events.contains("\"type\":\"transcript.text.delta\""), "{events}");
    assert!(events.ends_with("data: [DONE]\n\n"), "{events}");
}

/// A recording above the memory threshold is sent to the vendor unchanged.
#[tokio::test]
async fn long_recording_is_spilled_to_a_file() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let sound = wav(60);
    assert!(sound.len() > 900_000);
    let response = transcribe(&server, &sound, &[("model", "m")]).await;
    assert_eq!(response.status(), 200);
    let body = last(&upstream).body;
    assert!(body.windows(sound.len()).any(|window| window == sound));
}

#[tokio::test]
async fn subtitles_require_timestamps() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "features_disabled = [\"supports_timestamps\"]");
    let response = transcribe(&server, &wav(1), &[("model", "m"), ("response_format", "srt")]).await;
    assert_eq!(response.status(), 400);
    let answer = json_of(response).await;
    assert_eq!(answer["error"]["code"], "E4011", "{answer}");
    assert!(upstream.received().is_empty());
    // Optional timestamps are dropped, and the adaptation is reported.
    let response = transcribe(
        &server,
        &wav(1),
        &[("model", "m"), ("response_format", "verbose_json")],
    )
    .await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-cogn-adapted"], "/payload/timestamps");
}

#[tokio::test]
async fn invalid_audio_is_not_sent() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let truncated = wav(1).split_off(20);
    for sound in [Vec::new(), b"hello".to_vec(), PICTURE.to_vec(), truncated] {
        let response = transcribe(&server, &sound, &[("model", "m")]).await;
        assert_eq!(response.status(), 400);
        let answer = json_of(response).await;
        let code = answer["error"]["code"].as_str().unwrap_or_default();
        assert!(code.starts_with("E10"), "{answer}");
        assert_eq!(answer["error"]["type"], "invalid_request_error");
    }
    let no_form = server
        .post("/v1/audio/transcriptions")
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(no_form.status(), 415);
    let no_file = form(server.post("/v1/audio/transcriptions"), &[], &[("model", "m")]);
    assert_eq!(no_file.send().await.unwrap().status(), 400);
    assert!(upstream.received().is_empty());
}

/// A client that announces the length and waits always receives the response.
fn assert_announced_body_is_refused(server: &Server, path: &str, length: usize) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n");
    let kind = "content-type: multipart/form-data; boundary=b\r\n";
    write!(stream, "{head}{kind}content-length: {length}\r\n\r\n").unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413", "{path}");
}

#[tokio::test]
async fn body_over_limit_is_refused() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    assert_announced_body_is_refused(&server, "/v1/audio/transcriptions", 70 * 1024 * 1024);
    assert_announced_body_is_refused(&server, "/v1/embeddings", 17 * 1024 * 1024);
    let endless = vec![0; 70 * 1024 * 1024];
    let request = server.post("/v1/audio/transcriptions");
    let sent = form(request, &[("file", &endless)], &[("model", "m")])
        .send()
        .await;
    // The server may close the connection before the whole body is sent.
    if let Ok(response) = sent {
        assert_eq!(response.status(), 413);
    }
    let text = "x".repeat(17 * 1024 * 1024);
    let sent = server
        .post("/v1/embeddings")
        .body(json!({"input": text}).to_string());
    if let Ok(response) = sent.send().await {
        assert_eq!(response.status(), 413);
    }
    assert!(upstream.received().is_empty());
}

#[tokio::test]
async fn text_is_converted_to_speech() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    let body = json!({"model": "m", "input": "Hello.", "voice": "alloy", "response_format": "wav"});
    let response = server
        .post("/v1/audio/speech")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "audio/wav");
    assert_eq!(response.bytes().await.unwrap(), wav(1));
    assert_eq!(last(&upstream).json(), body);
    let (status, answer) = post(&server, "/v1/audio/speech", &json!({"model": "m", "input": " "})).await;
    assert_eq!(status, 400, "{answer}");
}

#[tokio::test]
async fn failover_counts_both_attempts() {
    let (stage, upstream) = (Stage::new(), vendor());
    let broken = MockServer::with_responses(ScriptedResponse::response("503 Service Unavailable", &[], "{}"));
    let config = format!(
        "[routing]\npolicy = \"priority\"\n{}{}",
        back_end(
            "broken",
            &broken.url(""),
            "operations = [\"embeddings\"]\npriority = 1\nmodel = \"m\""
        ),
        back_end(
            "good",
            &upstream.url(""),
            "operations = [\"embeddings\"]\nmodel = \"m\""
        )
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let body = json!({"model": "m", "input": "a"});
    let response = server
        .post("/v1/embeddings")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["x-cogn-backend"], "good");
    assert_eq!(response.headers()["x-cogn-attempts"], "2");
    let usage = json_of(server.get("/v1/usage?by=model").send().await.unwrap()).await;
    let lines = usage["data"].to_string();
    assert!(lines.contains("\"input_tokens\":3"), "{usage}");
    let (status, answer) = post(
        &server,
        "/v1/embeddings",
        &json!({"model": "other", "input": "a"}),
    )
    .await;
    assert_eq!(status, 404, "{answer}");
    assert_eq!(answer["error"]["code"], "model_not_found");
}

/// The recipes of the guide print the output it shows.
#[tokio::test]
async fn guide_recipes_print_shown_output() {
    let (stage, upstream) = (Stage::new(), vendor());
    let all = "features = [\"supports_batch\", \"supports_image_input\", \"supports_language\", \
               \"supports_timestamps\", \"supports_voices\", \"supports_formats\"]";
    let server = serve(&stage, &upstream, all);
    let played = tokio::task::spawn_blocking(move || play("docs/guide/embeddings-and-media.md", &server));
    let (recipes, curls) = played.await.unwrap();
    assert!(
        recipes >= 6 && recipes == curls,
        "{recipes} of {curls} recipes were run"
    );
}
