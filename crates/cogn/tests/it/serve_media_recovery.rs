//! Runs with long inline media that a killed server left unfinished: the journal refers to files of the run,
//! from which the next server reruns it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ir::media::{Base64, MediaHandle};
use serde_json::{Value, json};

use crate::harness::{Server, Stage, assemble, data};
use crate::serve::{session, sse, sse_until};

/// A stage with the module `listener`, which takes audio.
fn stage() -> Stage {
    let stage = Stage::new();
    let folder = stage.path("modules/listener");
    fs::create_dir_all(&folder).unwrap();
    let manifest = "name: listener\nversion: 1.0.0\nresponsibility: describe a sound\ntier: decision\n\
                    excludes: [guessing]\npolicies: {side_effects: deny}\nmodalities: {input: [text, audio]}\n\
                    response: {buffer_size: 0, mode: both}\n";
    let item = json!({"type": "object", "properties": {"type": {}, "media_type": {}}});
    let schema = json!({
        "input": {"type": "object", "required": ["sound"], "properties": {"sound": item}},
        "data": {"type": "object"}
    });
    fs::write(folder.join("module.yaml"), manifest).unwrap();
    fs::write(folder.join("prompt.md"), "$MEDIA_INPUTS $INPUT\n").unwrap();
    fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
    stage
}

/// A WAV file of this many samples without repetition.
fn sound(samples: u32) -> Vec<u8> {
    let size = |bytes: u32| bytes.to_le_bytes();
    let mut sound = Vec::from(*b"RIFF");
    sound.extend(size(samples * 2 + 36));
    sound.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    sound.extend(size(48_000));
    sound.extend(size(96_000));
    sound.extend(b"\x02\0\x10\0data");
    sound.extend(size(samples * 2));
    sound.extend((0..samples).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes().into_iter().take(2)));
    sound
}

/// The folders of unfinished runs.
fn run_folders(stage: &Stage) -> Vec<PathBuf> {
    let folders = fs::read_dir(stage.path("journal.db-media")).into_iter().flatten();
    folders.map(|folder| folder.unwrap().path()).collect()
}

/// The events of a run before its server is killed.
async fn interrupted(stage: &Stage, sound: &Base64) -> String {
    let server = stage.serve(&[&stage.talker(20)]);
    let item = json!({"type": "base64", "media_type": "audio/wav", "data": sound.as_str()});
    let body = json!({"input": {"sound": item}});
    let before = sse_until(server.execute("listener", &body), 4).await;
    server.kill();
    before
}

/// The envelope of the run after the next server has recovered it.
async fn recovered(stage: &Stage, before: &str) -> (Value, Server) {
    let server = stage.serve(&[&stage.talker(0)]);
    let events = server.get(&format!("/v1/runs/{}/events", session(before)));
    let after = sse(events.header("last-event-id", "4")).await;
    (assemble(&format!("{before}{after}")).envelope, server)
}

#[tokio::test]
async fn rerun_reads_media_from_files_of_the_run() {
    let stage = stage();
    let sound = sound(100_000);
    let text = Base64::from_bytes(&sound);
    let before = interrupted(&stage, &text).await;
    let folders = run_folders(&stage);
    assert_eq!(folders.len(), 1);
    assert!(folders[0].ends_with(session(&before)), "{folders:?}");
    let part = text.as_str().get(1_000..1_100).unwrap().as_bytes();
    for file in fs::read_dir(stage.path("")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file()
            && path
                .file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("journal.db")
        {
            let bytes = fs::read(&path).unwrap();
            let found = bytes.windows(part.len()).any(|window| window == part);
            assert!(!found, "{} contains the media", path.display());
        }
    }
    let (envelope, _server) = recovered(&stage, &before).await;
    assert_eq!(envelope["data"], data(), "{envelope}");
    let sha256 = MediaHandle::from_bytes(sound).unwrap().checksum().value.clone();
    assert_eq!(
        envelope["meta"]["media_validation"]["validated"][0]["sha256"], sha256,
        "{envelope}"
    );
    let removed = async {
        while !run_folders(&stage).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), removed)
        .await
        .expect("the files of an ended run are removed");
}

#[tokio::test]
async fn run_without_its_files_is_closed() {
    let stage = stage();
    let text = Base64::from_bytes(&sound(100_000));
    let before = interrupted(&stage, &text).await;
    fs::remove_file(run_folders(&stage)[0].join("0")).unwrap();
    let (envelope, _server) = recovered(&stage, &before).await;
    assert_eq!(envelope["error"]["code"], "E2010", "{envelope}");
    assert_eq!(run_folders(&stage), Vec::<PathBuf>::new());
}
