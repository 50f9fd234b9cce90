//! Images and audio of many megabytes through `cogn serve`: in every response form the client receives every
//! byte, and the server holds only chunks in memory.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ir::media::Base64;
use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};

use crate::harness::{Server, Stage};
use crate::openai_unary::{ALL, back_end, form, json_of, wav};

const MIB: usize = 1024 * 1024;
const LARGE: usize = 40 * MIB;

/// Non-repeating bytes after the header of a format.
fn noise(head: &[u8], length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let tail = (0..length).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    head.iter().copied().chain(tail).collect()
}

fn picture(length: usize) -> Vec<u8> {
    noise(b"\x89PNG\r\n\x1a\n", length)
}

fn sound(length: usize) -> Vec<u8> {
    noise(b"OggS", length)
}

/// A mock server whose first response of each kind is small.
fn vendor() -> MockServer {
    let picture_of = |length| {
        let text = Base64::from_bytes(&picture(length))
            .into_string()
            .replace('/', "\\/");
        let body =
            format!("{{\"created\":1,\"output_format\":\"png\",\"data\":[{{\"b64_json\":\"{text}\"}}]}}");
        ScriptedResponse::good("application/json", body)
    };
    let sound_of = |length| ScriptedResponse::good("audio/ogg", sound(length));
    let pictures = (picture_of(1_000), picture_of(LARGE));
    let sounds = (sound_of(1_000), sound_of(LARGE));
    MockServer::with_responder(move |_, asked| {
        let is_large = asked.text().contains("large");
        let (small, large) = match asked.path() {
            "/v1/images/generations" => &pictures,
            _ => &sounds,
        };
        (if is_large { large } else { small }).clone()
    })
}

fn serve(stage: &Stage, upstream: &MockServer, media: &str) -> Server {
    fs::create_dir_all(stage.path("spool")).unwrap();
    let config = format!(
        "[server]\nraw_answers = true\n[media]\nfolder = \"{}\"\n{media}\n{}",
        stage.path("spool").display(),
        back_end("vendor", &upstream.url(""), &format!("operations = {ALL}"))
    );
    let mut command = stage.serving(&["--config", &stage.config(&config)], &[]);
    // Memory that the allocator retains after it was freed varies; it is not measured here.
    command.env("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0");
    Server::spawn(command)
}

fn status_bytes(server: &Server, field: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Files of the spill store that the server has open.
fn spooled(stage: &Stage, server: &Server) -> usize {
    let spool = stage.path("spool").canonicalize().unwrap();
    let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let inside = open.filter(|fd| {
        let file = fd.as_ref().map(|fd| fs::read_link(fd.path()));
        file.is_ok_and(|file| file.is_ok_and(|file| file.starts_with(&spool)))
    });
    inside.count()
}

async fn nothing_is_kept(stage: &Stage, server: &Server) {
    for _ in 0..1_000 {
        if spooled(stage, server) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("unused media remains in the spill store");
}

fn decoded(text: &Value) -> Vec<u8> {
    Base64::from_text(text.as_str().unwrap()).decode().unwrap()
}

/// Every response form of images and audio; `word` selects the size.
async fn ask_for_all(server: &Server, word: &str, length: usize) {
    let (picture, sound) = (picture(length), sound(length));
    let post = async |path: &str, body: Value| {
        let response = server.post(path).body(body.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert!(response.headers().contains_key("content-length"), "{path}");
        response
    };
    let body = json!({"model": "m", "prompt": word});
    let answer = json_of(post("/v1/images/generations", body).await).await;
    assert_eq!(answer["created"], 1);
    assert!(decoded(&answer["data"][0]["b64_json"]) == picture, "{word}");

    let body = json!({"model": "m", "prompt": word, "response_format": "url"});
    let answer = json_of(post("/v1/images/generations", body).await).await;
    let url = answer["data"][0]["url"].as_str().unwrap();
    let data = url.strip_prefix("data:image/png;base64,").unwrap();
    assert!(decoded(&json!(data)) == picture, "{word}");

    let body = json!({"model": "m", "input": word});
    let response = post("/v1/audio/speech", body).await;
    assert_eq!(response.headers()["content-type"], "audio/ogg");
    assert!(response.bytes().await.unwrap() == sound, "{word}");

    let canonical = |operation: &str, payload: Value| json!({"operation": operation, "payload": payload, "extra": {"raw": true}});
    let body = canonical("image_generation", json!({"model": "m", "prompt": word}));
    let answer = json_of(post("/v1/canonical", body).await).await;
    let image = &answer["result"]["payload"]["images"][0];
    assert_eq!(
        (&image["kind"], &image["mime"]),
        (&json!("inline_base64"), &json!("image/png"))
    );
    assert!(decoded(&image["data"]) == picture, "{word}");
    let raw = answer["raw"]["data"][0]["b64_json"].as_str().unwrap();
    assert!(raw.len() < 2_000, "the raw response contains no large image");
    let named = answer["adaptations"]
        .as_array()
        .is_some_and(|all| all[0]["pointer"] == "/extra/raw");
    assert_eq!(named, word == "large");

    let body = canonical("text_to_speech", json!({"model": "m", "input": word}));
    let answer = json_of(post("/v1/canonical", body).await).await;
    let audio = &answer["result"]["payload"]["audio"];
    assert_eq!(
        (&audio["kind"], &audio["mime"]),
        (&json!("inline_base64"), &json!("audio/ogg"))
    );
    assert!(decoded(&audio["data"]) == sound, "{word}");
}

#[tokio::test]
async fn large_images_and_audio_are_streamed_through() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    // The first requests measure the baseline of a server that has answered such requests.
    ask_for_all(&server, "small", 1_000).await;
    let (kept, peak) = (status_bytes(&server, "RssAnon:"), status_bytes(&server, "VmHWM:"));
    ask_for_all(&server, "large", LARGE).await;
    nothing_is_kept(&stage, &server).await;
    assert_eq!(
        fs::read_dir(stage.path("spool")).unwrap().count(),
        0,
        "nothing has a name"
    );
    let more = status_bytes(&server, "RssAnon:").saturating_sub(kept);
    assert!(more < 4 * MIB, "{more} bytes more are retained");
    let more = status_bytes(&server, "VmHWM:").saturating_sub(peak);
    assert!(more < 8 * MIB, "{more} bytes more at the peak");
}

#[tokio::test]
async fn full_spill_store_is_reported_and_recovers() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "store_max = 10000000");
    for (path, body) in [
        ("/v1/images/generations", json!({"model": "m", "prompt": "large"})),
        ("/v1/audio/speech", json!({"model": "m", "input": "large"})),
        (
            "/v1/canonical",
            json!({"operation": "text_to_speech", "payload": {"model": "m", "input": "large"}}),
        ),
    ] {
        let asked = upstream.received().len();
        let response = server.post(path).body(body.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 500, "{path}");
        let text = response.text().await.unwrap();
        assert!(text.contains("E4000") && text.contains("store is full"), "{text}");
        assert_eq!(upstream.received().len(), asked + 1, "no second request is sent");
        nothing_is_kept(&stage, &server).await;
    }
    let asked = upstream.received().len();
    let upload = form(
        server.post("/v1/audio/transcriptions"),
        &[("file", &wav(700))],
        &[("model", "m")],
    );
    let response = upload.send().await.unwrap();
    assert_eq!(response.status(), 500);
    let text = response.text().await.unwrap();
    assert!(text.contains("E4000") && text.contains("store is full"), "{text}");
    assert_eq!(upstream.received().len(), asked, "no request is sent");
    nothing_is_kept(&stage, &server).await;
    ask_for_all(&server, "small", 1_000).await;
}

#[tokio::test]
async fn disconnect_in_the_middle_leaves_no_spill_files() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, "");
    for (path, body) in [
        ("/v1/audio/speech", json!({"model": "m", "input": "large"})),
        ("/v1/images/generations", json!({"model": "m", "prompt": "large"})),
    ] {
        let mut caller = TcpStream::connect(server.address()).unwrap();
        let (body, length) = (body.to_string(), body.to_string().len());
        write!(
            caller,
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut some = vec![0; 100_000];
        caller.read_exact(&mut some).unwrap();
        assert!(some.starts_with(b"HTTP/1.1 200"));
        assert_eq!(spooled(&stage, &server), 1, "the rest waits to be read");
        drop(caller);
        nothing_is_kept(&stage, &server).await;
    }
}
