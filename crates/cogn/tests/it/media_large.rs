//! Media too large for memory: it is streamed from a file to the back-end once per attempt, and no file
//! remains.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ir::media::Base64;
use tempfile::TempDir;
use testkit::http::{MockServer, ReceivedRequest, ScriptedResponse};

use crate::examples::root;
use crate::harness::binary;

const MIB: usize = 1024 * 1024;

/// Non-repeating audio of this many bytes.
fn wav(bytes: usize) -> Vec<u8> {
    let mut sound = Vec::with_capacity(bytes + 44);
    let size = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    sound.extend(b"RIFF");
    sound.extend(size(bytes + 36));
    sound.extend(b"WAVEfmt \x10\0\0\0\x01\0\x02\0");
    sound.extend(48_000_u32.to_le_bytes());
    sound.extend(192_000_u32.to_le_bytes());
    sound.extend(b"\x04\0\x10\0data");
    sound.extend(size(bytes));
    let mut state = 1_u32;
    sound.extend((0..bytes).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    }));
    sound
}

struct Place {
    folder: TempDir,
}

impl Place {
    fn new(upstream: &MockServer, sound: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sound.wav"), sound).unwrap();
        fs::create_dir(folder.path().join("spool")).unwrap();
        let config = format!(
            "[media]\nfolder = \"spool\"\n[[backends]]\nname = \"b\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
             features = [\"supports_stream\", \"supports_audio_input\"]\n",
            upstream.url("/v1")
        );
        fs::write(folder.path().join("cogn.toml"), config).unwrap();
        Self { folder }
    }

    fn start(&self) -> Child {
        Command::new(binary())
            .current_dir(self.folder.path())
            .arg("--modules")
            .arg(root().join("examples/modules"))
            .args(["run", "audio-transcriber", "--json", "--config", "cogn.toml"])
            .args(["--audio", "sound.wav"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn spooled(&self) -> usize {
        fs::read_dir(self.folder.path().join("spool")).unwrap().count()
    }
}

fn sound_in(asked: &ReceivedRequest) -> Vec<u8> {
    let body = asked.json();
    let parts = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let part = parts
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["type"] == "input_audio");
    let text = part.unwrap()["input_audio"]["data"].as_str().unwrap().to_owned();
    Base64::from_text(text).decode().unwrap()
}

/// Peak memory of a process in bytes.
fn peak_of(process: u32) -> usize {
    let status = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Runs a module on audio whose first call fails, and returns the peak memory.
fn peak_with(bytes: usize) -> usize {
    let sound = Arc::new(wav(bytes));
    let process = Arc::new(OnceLock::<u32>::new());
    let peak = Arc::new(Mutex::new(0));
    let (seen, looked, expected) = (process.clone(), peak.clone(), sound.clone());
    let upstream = MockServer::with_responder(move |count, asked| {
        let length: usize = asked.header("content-length").unwrap().parse().unwrap();
        assert_eq!(length, asked.body.len(), "the length is declared");
        assert!(sound_in(asked) == *expected, "call {count} has the sound");
        *looked.lock().unwrap() = peak_of(*seen.wait());
        match count {
            0 => ScriptedResponse::response("500 Internal Server Error", &[], "{}"),
            _ => ScriptedResponse::response("400 Bad Request", &[], "{}"),
        }
    });
    let place = Place::new(&upstream, &sound);
    let mut child = place.start();
    process.set(child.id()).unwrap();
    child.wait().unwrap();
    assert_eq!(upstream.received().len(), 2, "the request was sent again");
    let peak = *peak.lock().unwrap();
    assert!(peak > 0, "no memory sample was taken");
    peak
}

#[test]
fn memory_is_independent_of_media_size() {
    let (small, large) = (peak_with(MIB), peak_with(24 * MIB));
    let more = large.saturating_sub(small);
    assert!(
        more < 8 * MIB,
        "24 MiB of sound took {more} bytes more than 1 MiB of it"
    );
}

#[test]
fn spill_file_is_anonymous_and_gone_after_kill() {
    let upstream = MockServer::with_responses(ScriptedResponse::nothing().after(Duration::from_secs(600)));
    let place = Place::new(&upstream, &wav(MIB));
    let mut child = place.start();
    while upstream.received().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert_eq!(place.spooled(), 0);
    let open = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    let spool = place.folder.path().join("spool").canonicalize().unwrap();
    let held = open.filter(|fd| {
        let file = fs::read_link(fd.as_ref().unwrap().path()).unwrap_or_default();
        file.starts_with(&spool)
    });
    assert_eq!(held.count(), 1, "the sound lies in the folder all the same");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.spooled(), 0);
}
