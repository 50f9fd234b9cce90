//! A client that disconnects before an embedding, image, transcription or speech response cancels the call.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Stage;
use crate::openai_unary::{ALL, back_end, form, json_of, wav};

/// A server that never answers; it reports when it received a request and when the connection was closed.
fn silent() -> (String, mpsc::Receiver<Instant>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().unwrap();
        let mut buffer = [0; 64 * 1024];
        let mut asked = false;
        while let Ok(1..) = caller.read(&mut buffer) {
            if !std::mem::replace(&mut asked, true) {
                tell.send(Instant::now()).unwrap();
            }
        }
        tell.send(Instant::now()).unwrap();
    });
    (url, told)
}

#[tokio::test]
async fn disconnect_cancels_the_call() {
    let sound = wav(1);
    for path in [
        "/v1/embeddings",
        "/v1/images/generations",
        "/v1/audio/speech",
        "/v1/audio/transcriptions",
    ] {
        let stage = Stage::new();
        let (url, told) = silent();
        let config = back_end("vendor", &url, &format!("operations = {ALL}"));
        let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
        let request = match path {
            "/v1/audio/transcriptions" => form(server.post(path), &[("file", &sound)], &[("model", "m")]),
            _ => server
                .post(path)
                .body(json!({"model": "m", "input": "a", "prompt": "a"}).to_string()),
        };
        let mut asking = tokio::task::JoinSet::new();
        asking.spawn(request.send());
        let (told, first) = tokio::task::spawn_blocking(move || {
            let first = told.recv_timeout(Duration::from_secs(20));
            (told, first)
        })
        .await
        .unwrap();
        first.expect("a request was received");
        let left = Instant::now();
        asking.abort_all();
        let gone = tokio::task::spawn_blocking(move || told.recv_timeout(Duration::from_secs(20)));
        let gone = gone.await.unwrap().expect("the connection was closed");
        // Takes tenths of a millisecond on an idle machine; a busy machine may need longer.
        assert!(
            gone.saturating_duration_since(left) < Duration::from_secs(2),
            "{path}"
        );
        // The usage is recorded as an estimate and marked as such.
        let usage = loop {
            let usage = json_of(server.get("/v1/usage").send().await.unwrap()).await;
            if usage["data"].to_string().contains("\"runs\":1") {
                break usage;
            }
            tokio::task::yield_now().await;
        };
        assert!(
            usage["data"].to_string().contains("\"input_tokens\":null"),
            "{usage}"
        );
    }
}
