//! Programs as back-ends: real processes that succeed, fail, or would not end by themselves.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::port::{UnaryResponse, Upstream};
use futures::StreamExt;
use ir::envelope::{
    EmbeddingVector, EmbeddingsRequest, ResponsePayload, SpeechRequest, TranscriptionRequest,
};
use ir::media::{Base64, MediaHandle};
use ir::{
    ChatRequest, Error, ErrorKind, Event, Ext, Fold, Map, Media, MediaSource, Message, Operation, Payload,
    Request, Role,
};
use providers::command::{MemoryLimit, OutputFormat};
use providers::{CommandOptions, CommandUpstream};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The program is a shell; its script comes from the test, never from a caller.
fn options(operation: Operation, script: &str) -> CommandOptions {
    let script = &script.replace('{', "{{").replace('}', "}}");
    let arguments = ["-c", script, "sh", "{input}", "{output}"];
    let used = match (script.contains("$1"), script.contains("$2")) {
        (_, true) => 5,
        (true, false) => 4,
        (false, false) => 3,
    };
    let mut options =
        CommandOptions::new("program", operation, "/bin/sh", &arguments[..used]).expect("a good template");
    options.environment = vec![("PATH".into(), std::env::var_os("PATH").expect("a path"))];
    options
}

fn speak(text: &str) -> Arc<Request> {
    Arc::new(Request::new(
        "r",
        Payload::Speech(SpeechRequest {
            model: None,
            input: String::from(text),
            voice: None,
            format: None,
            speed: None,
            ssml: None,
            ext: Ext::default(),
            rest: Map::new(),
        }),
    ))
}

fn transcribe(bytes: &[u8]) -> Arc<Request> {
    let audio = Media::new(MediaSource::Inline(Base64::from_bytes(bytes)), None);
    Arc::new(Request::new(
        "r",
        Payload::Transcription(Box::new(TranscriptionRequest {
            model: None,
            audio,
            language: None,
            prompt: None,
            timestamps: None,
            diarization: None,
            temperature: None,
            ext: Ext::default(),
            rest: Map::new(),
        })),
    ))
}

fn embed(texts: &[&str]) -> Arc<Request> {
    Arc::new(Request::new(
        "r",
        Payload::Embeddings(EmbeddingsRequest {
            model: None,
            input: texts.iter().map(ToString::to_string).collect(),
            dimensions: None,
            encoding_format: None,
            ext: Ext::default(),
            rest: Map::new(),
        }),
    ))
}

fn chat(messages: &[(Role, &str)]) -> Arc<Request> {
    let messages = messages.iter().map(|(role, text)| Message::text(*role, *text));
    let chat = ChatRequest {
        messages: messages.collect(),
        ..ChatRequest::default()
    };
    Arc::new(Request::chat("r", chat))
}

async fn answer(options: CommandOptions, request: Arc<Request>) -> Result<UnaryResponse, Error> {
    let patience = Duration::from_secs(60);
    let answer = CommandUpstream::new(options).call(request);
    timeout(patience, answer).await.expect("an answer in time")
}

async fn chat_text(options: CommandOptions, request: Arc<Request>) -> Result<String, Error> {
    let mut fold = Fold::new();
    let mut events = CommandUpstream::new(options).stream(request);
    let all = async {
        while let Some(event) = events.next().await {
            fold.push(event);
        }
        fold.finish().map(|response| response.text())
    };
    timeout(Duration::from_secs(60), all)
        .await
        .expect("an end in time")
}

/// A named pipe: it reaches end of file when no process holds it open.
fn witness(folder: &Path) -> (PathBuf, pipe::Receiver) {
    let path = folder.join("witness");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo starts").success());
    let receiver = pipe::OpenOptions::new().open_receiver(&path).expect("a pipe");
    (path, receiver)
}

/// The first line that is written to the pipe.
async fn line(receiver: &mut pipe::Receiver) -> String {
    let mut line = Vec::new();
    let reading = async {
        loop {
            receiver.readable().await.expect("readable");
            // Before a writer has opened the pipe, reads return end of file.
            match receiver.read_u8().await {
                Ok(b'\n') => return,
                Ok(byte) => line.push(byte),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    timeout(Duration::from_secs(60), reading)
        .await
        .expect("a line in time");
    String::from_utf8(line).expect("text")
}

/// Returns when every process that held the pipe open has exited.
async fn all_exited(receiver: &mut pipe::Receiver) {
    let mut rest = Vec::new();
    let end = timeout(Duration::from_secs(20), receiver.read_to_end(&mut rest)).await;
    end.expect("all processes exit in time").expect("readable");
}

/// Returns when the folder has been removed, which happens after its process has exited.
async fn removed(folder: &str) {
    let gone = async {
        while Path::new(folder).try_exists().expect("readable") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), gone)
        .await
        .expect("removed in time");
}

#[tokio::test]
async fn program_output_is_a_chat_response() {
    let text = chat_text(
        options(Operation::ChatCompletions, "cat; echo; echo"),
        chat(&[(Role::User, "héllo 東京")]),
    );
    assert_eq!(text.await, Ok(String::from("héllo 東京")));
    let several = chat(&[
        (Role::System, "Be kind."),
        (Role::User, "Hi"),
        (Role::Assistant, "Hello"),
        (Role::User, "Bye"),
    ]);
    let text = chat_text(options(Operation::ChatCompletions, "cat \"$1\""), several).await;
    let expected = "System: Be kind.\n\nUser: Hi\n\nAssistant: Hello\n\nUser: Bye";
    assert_eq!(text.as_deref(), Ok(expected));
}

#[tokio::test]
async fn chat_streams_while_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, mut receiver) = witness(folder.path());
    // Half a character first: it is not emitted before the rest has arrived.
    let script = format!(
        "exec 3>'{}'; printf 'one \\303'; printf '\\251 '; echo spoken >&3; read -r _ < /dev/null; sleep 300",
        path.display()
    );
    let mut events = CommandUpstream::new(options(Operation::ChatCompletions, &script))
        .stream(chat(&[(Role::User, "go")]));
    let mut text = String::new();
    while !text.ends_with('é') {
        let event = timeout(Duration::from_secs(60), events.next()).await;
        match event.expect("an event in time").expect("an event") {
            Event::BlockDelta {
                delta: ir::Delta::Text { text: piece },
                ..
            } => text.push_str(&piece),
            Event::Started { .. } | Event::BlockStart { .. } => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(text, "one é");
    assert_eq!(line(&mut receiver).await, "spoken");
    drop(events);
    all_exited(&mut receiver).await;
}

#[tokio::test]
async fn program_gets_only_the_allowed_environment() {
    let mut options =
        CommandOptions::new("p", Operation::ChatCompletions, "/usr/bin/env", &[] as &[&str]).expect("good");
    options.environment = vec![("SHOWN".into(), "yes".into())];
    let text = chat_text(options, chat(&[(Role::User, "?")]))
        .await
        .expect("a text");
    let names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(names, ["SHOWN", "TMPDIR"], "{text}");
}

#[tokio::test]
async fn program_runs_in_a_private_folder_that_is_removed() {
    let script = "pwd; ls -A; stat -c %a .; test \"$TMPDIR\" = \"$(pwd)\" && echo same";
    let text = chat_text(
        options(Operation::ChatCompletions, script),
        chat(&[(Role::User, "?")]),
    );
    let text = text.await.expect("a text");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1..], ["input.txt", "700", "same"], "{text}");
    removed(lines[0]).await;
}

#[tokio::test]
async fn speech_is_read_from_output_file_with_detected_type() {
    let script = "printf 'RIFF....WAVE%s' \"$(cat \"$1\")\" > \"$2\"; echo chatter";
    let mut options = options(Operation::TextToSpeech, script);
    options.formats = vec![String::from("wav")];
    let answer = answer(options, speak("-w /etc/passwd; $(id)"))
        .await
        .expect("speech");
    let ResponsePayload::Speech(speech) = answer.payload else {
        panic!("no speech")
    };
    assert_eq!(speech.audio.mime.as_deref(), Some("audio/wav"));
    let MediaSource::Inline(bytes) = &speech.audio.source else {
        panic!("not inline")
    };
    assert_eq!(
        bytes.decode().expect("bytes"),
        b"RIFF....WAVE-w /etc/passwd; $(id)"
    );
    assert_eq!(answer.usage, None);
}

#[tokio::test]
async fn transcribes_audio_of_supported_formats() {
    let script = "printf '{\"out\": {\"text\": \"%s\", \"language\": \"en\"}}' \"$(basename \"$1\") $(wc -c < \"$1\")\"";
    let mut transcriber = options(Operation::SpeechToText, script);
    transcriber.formats = vec![String::from("wav")];
    transcriber.reply = OutputFormat::Json {
        pointer: String::from("/out"),
    };
    let transcription = answer(transcriber.clone(), transcribe(b"RIFF....WAVEdata"))
        .await
        .expect("text");
    let ResponsePayload::Transcription(transcription) = transcription.payload else {
        panic!("no transcription")
    };
    assert_eq!(
        (transcription.text.as_str(), transcription.language.as_deref()),
        ("input.wav 16", Some("en"))
    );
    // Audio outside of memory is transcribed as well.
    let held = MediaHandle::from_bytes(b"RIFF....WAVEdata".to_vec()).expect("held");
    let mut there = Request::clone(&transcribe(b""));
    if let Payload::Transcription(asked) = &mut there.payload {
        asked.audio.source = MediaSource::Handle(held);
    }
    let again = answer(transcriber.clone(), Arc::new(there)).await.expect("text");
    assert_eq!(again.payload, ResponsePayload::Transcription(transcription));
    for strange in [&b"ID3\x04mp3"[..], b"no audio at all"] {
        let refused = answer(transcriber.clone(), transcribe(strange))
            .await
            .expect_err("refused");
        assert_eq!(refused.kind, ErrorKind::Unsupported, "{refused}");
    }
}

#[tokio::test]
async fn embeddings_require_one_vector_per_text() {
    let two = "grep -q '^\\[\"a\",\"b\"\\]$' \"$1\" && echo '[[1, 0.5], [2, 1]]'";
    let made = answer(options(Operation::Embeddings, two), embed(&["a", "b"])).await;
    let ResponsePayload::Embeddings(made) = made.expect("vectors").payload else {
        panic!("no vectors")
    };
    let numbers = |vector: &EmbeddingVector| serde_json::to_string(vector).expect("numbers");
    let vectors: Vec<_> = made.embeddings.iter().map(|one| numbers(&one.vector)).collect();
    assert_eq!(vectors, ["[1,0.5]", "[2,1]"]);
    for (reply, texts) in [
        ("echo '[[1,2]]'", &["a", "b"][..]),
        ("echo '[[1,2],[3]]'", &["a", "b"]),
        ("echo '[[1,\"2\"]]'", &["a"]),
        ("echo '[[]]'", &["a"]),
        ("echo '{}'", &["a"]),
        ("echo nothing", &["a"]),
    ] {
        let refused = answer(options(Operation::Embeddings, reply), embed(texts)).await;
        assert_eq!(
            refused.expect_err(reply).kind,
            ErrorKind::InvalidResponse,
            "{reply}"
        );
    }
}

#[tokio::test]
async fn program_failure_does_not_expose_stderr() {
    let script = "echo 'secret path /etc/shadow' >&2; exit 3";
    let failed = answer(
        options(Operation::SpeechToText, script),
        transcribe(b"RIFF....WAVE"),
    )
    .await;
    let failed = failed.expect_err("it failed");
    assert_eq!(failed.kind, ErrorKind::Upstream);
    assert_eq!(failed.message, "the program `sh` exited with status 3");
    let killed = chat_text(
        options(Operation::ChatCompletions, "printf begun; kill -9 $$"),
        chat(&[(Role::User, "?")]),
    );
    assert_eq!(
        killed.await.expect_err("it failed").message,
        "the program `sh` was killed"
    );
    let mut missing = options(Operation::SpeechToText, "true");
    missing.program = PathBuf::from("/nonexistent/program");
    let missing = answer(missing, transcribe(b"RIFF....WAVE"))
        .await
        .expect_err("not there");
    assert_eq!(missing.kind, ErrorKind::NotEnabled);
    assert!(!missing.message.contains("nonexistent"), "{missing}");
}

#[tokio::test]
async fn missing_output_is_a_failure() {
    let silent = answer(options(Operation::TextToSpeech, "true"), speak("x")).await;
    assert_eq!(silent.expect_err("nothing").kind, ErrorKind::InvalidResponse);
    let no_file = answer(options(Operation::TextToSpeech, "true \"$2\""), speak("x")).await;
    assert_eq!(no_file.expect_err("no file").kind, ErrorKind::InvalidResponse);
    // A symbolic link could expose another file.
    let link = answer(
        options(Operation::TextToSpeech, "ln -s /bin/sh \"$2\""),
        speak("x"),
    )
    .await;
    assert_eq!(link.expect_err("a link").kind, ErrorKind::InvalidResponse);
    let text = chat_text(
        options(Operation::ChatCompletions, "printf '\\377\\376'"),
        chat(&[(Role::User, "?")]),
    )
    .await;
    assert_eq!(text.expect_err("no text").kind, ErrorKind::InvalidResponse);
}

#[tokio::test]
async fn timeout_kills_the_process_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, mut receiver) = witness(folder.path());
    let script = format!(
        "exec 3>'{}'; pwd >&3; sleep 300 & sh -c 'sleep 300' & wait",
        path.display()
    );
    let mut slow = options(Operation::SpeechToText, &script);
    slow.timeout = Duration::from_millis(1500);
    let command = CommandUpstream::new(slow);
    let mut calls = JoinSet::new();
    calls.spawn(command.call(transcribe(b"RIFF....WAVE")));
    let work = line(&mut receiver).await;
    let overdue = calls
        .join_next()
        .await
        .expect("a call")
        .expect("no panic")
        .expect_err("overdue");
    assert_eq!(overdue.kind, ErrorKind::Timeout);
    all_exited(&mut receiver).await;
    removed(&work).await;
}

#[tokio::test]
async fn dropping_the_call_kills_the_process_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, mut receiver) = witness(folder.path());
    let script = format!("exec 3>'{}'; pwd >&3; sleep 300 & sleep 300", path.display());
    let command = CommandUpstream::new(options(Operation::SpeechToText, &script));
    let mut calls = JoinSet::new();
    calls.spawn(command.call(transcribe(b"RIFF....WAVE")));
    let work = line(&mut receiver).await;
    assert!(Path::new(&work).try_exists().expect("readable"));
    calls.abort_all();
    all_exited(&mut receiver).await;
    removed(&work).await;
}

#[tokio::test]
async fn response_does_not_wait_for_background_processes() {
    let text = chat_text(
        options(Operation::ChatCompletions, "sleep 300 & echo done"),
        chat(&[(Role::User, "?")]),
    );
    assert_eq!(text.await.as_deref(), Ok("done"));
}

#[tokio::test]
async fn output_limit_is_enforced() {
    let endless = |script: &str| {
        let mut options = options(Operation::TextToSpeech, script);
        options.output_bytes_max = 4096;
        options
    };
    let printed = answer(endless("yes"), speak("x")).await.expect_err("too much");
    assert_eq!(printed.kind, ErrorKind::InvalidResponse);
    assert!(printed.message.contains("4096 bytes"), "{printed}");
    let written = answer(endless("exec yes > \"$2\""), speak("x"))
        .await
        .expect_err("too much");
    assert!(written.message.contains("4096 bytes"), "{written}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn memory_limit_is_enforced() {
    let script = "python3 -c 'print(len(bytearray(1 << 30)))'";
    let mut bounded = options(Operation::ChatCompletions, script);
    let free = chat_text(bounded.clone(), chat(&[(Role::User, "?")])).await;
    assert_eq!(free.as_deref(), Ok("1073741824"));
    bounded.memory = Some(MemoryLimit {
        launcher: PathBuf::from("/usr/bin/prlimit"),
        bytes: 512 * 1024 * 1024,
    });
    let refused = chat_text(bounded, chat(&[(Role::User, "?")])).await;
    assert_eq!(refused.expect_err("too much").kind, ErrorKind::Upstream);
}

#[tokio::test]
async fn calls_beyond_the_queue_limit_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, mut receiver) = witness(folder.path());
    let script = format!("exec 3>'{}'; echo runs >&3; sleep 300", path.display());
    let mut one = options(Operation::SpeechToText, &script);
    (one.processes_max, one.queue_max) = (1, 1);
    let command = CommandUpstream::new(one);
    let mut calls = JoinSet::new();
    calls.spawn(command.call(transcribe(b"RIFF....WAVE")));
    assert_eq!(line(&mut receiver).await, "runs");
    let mut second = Box::pin(command.call(transcribe(b"RIFF....WAVE")));
    assert!(futures::poll!(&mut second).is_pending());
    let third = command
        .call(transcribe(b"RIFF....WAVE"))
        .await
        .expect_err("refused");
    assert_eq!(third.kind, ErrorKind::RateLimited);
    assert!(third.retry_after_ms.is_some());
    calls.abort_all();
    // The first call has ended, so the second can run.
    calls.spawn(second);
    assert_eq!(line(&mut receiver).await, "runs");
    calls.abort_all();
    all_exited(&mut receiver).await;
}

#[tokio::test]
async fn rejects_other_operation_or_model() {
    let other = answer(options(Operation::SpeechToText, "true"), speak("x")).await;
    assert_eq!(other.expect_err("other").kind, ErrorKind::Unsupported);
    let mut bound = options(Operation::TextToSpeech, "true");
    bound.model = Some(String::from("mine"));
    let mut request = Request::clone(&speak("x"));
    if let Payload::Speech(speech) = &mut request.payload {
        speech.model = Some(String::from("yours"));
    }
    let other = answer(bound, Arc::new(request)).await;
    assert_eq!(other.expect_err("other").kind, ErrorKind::NotEnabled);
}

#[tokio::test]
async fn probe_reports_whether_the_program_works() {
    let command = CommandUpstream::new(options(Operation::TextToSpeech, "true"));
    let arguments = |script: &str| [String::from("-c"), String::from(script)];
    assert_eq!(command.probe(&arguments("exit 0")).await, Ok(()));
    let failed = command.probe(&arguments("exit 4")).await.expect_err("it fails");
    assert_eq!(failed.kind, ErrorKind::Upstream);
}
