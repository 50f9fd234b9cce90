//! `cogn models`: weights are stored complete with the right digest, or not at all. The weights here are
//! a header of GGUF and a tail; `embedded` uses real ones.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

fn cogn(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
    command
        .env_clear()
        .env("HOME", folder)
        .env("COGN_MODELS_DIR", folder.join("models"))
        .current_dir(folder)
        .args(arguments);
    command.output().expect("cogn starts")
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn weights() -> Vec<u8> {
    // No tensors and no metadata.
    let mut bytes = [b"GGUF\x03\0\0\0".as_slice(), &[0; 16]].concat();
    bytes.extend((0_u32..200_000).flat_map(u32::to_le_bytes));
    bytes
}

const DIGEST_OF_WEIGHTS: &str = "2a0d1ed30bbcd4a58aa4bb3fbd1ce8ab7b1e5c36b3c0f1a0a2c1b8b9f3f0d7e4";

/// Serves `bytes`. The first responses end after `cut` bytes each; range requests are supported or not.
struct Server {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

/// Serves `first` bytes once, and then closes every connection without an answer.
fn serve_first(bytes: Vec<u8>, first: usize) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a caller");
            head(&stream);
            if number == 0 {
                answer(&mut stream, &bytes, None, Some(first));
            }
        }
    });
    let heads = Arc::default();
    Server { address, heads }
}

fn serve(bytes: Vec<u8>, cut: Option<usize>, ranges: bool) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a caller");
            let head = head(&stream);
            let asked = head.lines().find_map(|line| {
                let line = line.to_lowercase();
                let from = line
                    .strip_prefix("range: bytes=")?
                    .trim_end_matches('-')
                    .parse::<usize>();
                from.ok()
            });
            seen.lock().expect("unpoisoned").push(head);
            answer(&mut stream, &bytes, asked.filter(|_| ranges), cut);
        }
    });
    Server { address, heads }
}

fn head(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream.try_clone().expect("a second hand"));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).expect("a line") == 0 {
            break;
        }
    }
    head
}

fn answer(stream: &mut TcpStream, bytes: &[u8], from: Option<usize>, cut: Option<usize>) {
    let rest = &bytes[from.unwrap_or(0).min(bytes.len())..];
    let status = match from {
        Some(from) => format!(
            "206 Partial Content\r\nContent-Range: bytes {from}-{}/{}",
            bytes.len() - 1,
            bytes.len()
        ),
        None => String::from("200 OK"),
    };
    let length = rest.len();
    let sent = &rest[..cut.unwrap_or(length).min(length)];
    // The client may have disconnected by then.
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .ok();
    stream.write_all(sent).ok();
}

#[test]
fn interrupted_download_is_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(weights(), Some(300_000), true);
    let url = format!("http://{}/Tiny.gguf?x=1", server.address);
    let pulled = json(&cogn(folder.path(), &["models", "pull", &url, "--json"]));
    assert_eq!(pulled["name"], "tiny");
    assert_eq!(pulled["already"], false);
    let path = pulled["path"].as_str().expect("a path");
    assert_eq!(fs::read(path).expect("the weights"), weights());
    let heads = server.heads.lock().expect("unpoisoned");
    assert_eq!(heads.len(), 3, "{heads:?}");
    assert!(
        heads[1].to_lowercase().contains("range: bytes=300000-"),
        "{heads:?}"
    );
    assert!(
        heads[2].to_lowercase().contains("range: bytes=600000-"),
        "{heads:?}"
    );
    // Only the weights and their metadata file are left.
    assert_eq!(left(folder.path()), ["tiny.gguf", "tiny.json"]);
}

#[test]
fn failed_pull_leaves_no_files_and_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    // Nothing listens on port 1; the other addresses are refused without a request.
    for source in [
        "http://127.0.0.1:1/tiny.gguf",
        "http://example.com/x.gguf",
        "absent.gguf",
    ] {
        let output = cogn(folder.path(), &["models", "pull", source]);
        assert_eq!(output.status.code(), Some(2), "{source}");
        assert!(
            !folder.path().join("models").try_exists().expect("readable"),
            "{source}: {:?}",
            left(folder.path())
        );
    }
    // Other models stay.
    fs::write(folder.path().join("mine.gguf"), weights()).expect("written");
    json(&cogn(folder.path(), &["models", "pull", "mine.gguf", "--json"]));
    cogn(folder.path(), &["models", "pull", "absent.gguf"]);
    assert_eq!(left(folder.path()), ["mine.gguf", "mine.json"]);
}

#[test]
fn interrupted_pull_is_kept_for_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    // Without a byte of progress after the first response, the retries end.
    let server = serve_first(weights(), 300_000);
    let url = format!("http://{}/tiny.gguf", server.address);
    let output = cogn(folder.path(), &["models", "pull", &url]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("300000 bytes are kept"),
        "{}",
        stderr(&output)
    );
    assert_eq!(left(folder.path()), ["tiny.partial"]);
    let server = serve(weights(), None, true);
    let url = format!("http://{}/tiny.gguf", server.address);
    let pulled = json(&cogn(folder.path(), &["models", "pull", &url, "--json"]));
    assert_eq!(
        fs::read(pulled["path"].as_str().expect("a path")).expect("the weights"),
        weights()
    );
    let heads = server.heads.lock().expect("unpoisoned");
    assert!(
        heads[0].to_lowercase().contains("range: bytes=300000-"),
        "{heads:?}"
    );
}

/// The names in the folder of models.
fn left(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("models")).into_iter().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

#[test]
fn download_without_ranges_restarts() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("models")).expect("a folder");
    fs::write(folder.path().join("models/tiny.partial"), b"something else").expect("written");
    let server = serve(weights(), None, false);
    let url = format!("http://{}/tiny.gguf", server.address);
    let pulled = json(&cogn(folder.path(), &["models", "pull", &url, "--json"]));
    assert_eq!(
        fs::read(pulled["path"].as_str().expect("a path")).expect("the weights"),
        weights()
    );
}

#[test]
fn digest_of_a_known_model_cannot_be_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = cogn(
        folder.path(),
        &["models", "pull", "smollm2-135m-instruct", "--sha256", "00"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("the digest of smollm2-135m-instruct is b179c952"),
        "{}",
        stderr(&output)
    );
    assert!(left(folder.path()).is_empty());
}

#[test]
fn wrong_digest_leaves_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(weights(), None, true);
    let url = format!("http://{}/tiny.gguf", server.address);
    let output = cogn(
        folder.path(),
        &["models", "pull", &url, "--sha256", DIGEST_OF_WEIGHTS],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("expected 2a0d1ed3"),
        "{}",
        stderr(&output)
    );
    assert!(left(folder.path()).is_empty());
}

#[test]
fn non_gguf_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(b"<html>sign in first</html>".to_vec(), None, true);
    let url = format!("http://{}/tiny.gguf", server.address);
    let output = cogn(folder.path(), &["models", "pull", &url]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("is not a GGUF file"),
        "{}",
        stderr(&output)
    );
    assert!(left(folder.path()).is_empty());
}

#[test]
fn plain_http_to_remote_host_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = cogn(folder.path(), &["models", "pull", "http://example.com/x.gguf"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("only https://"), "{}", stderr(&output));
}

#[test]
fn file_is_pulled_listed_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("Mine.gguf"), weights()).expect("written");
    let pulled = json(&cogn(folder.path(), &["models", "pull", "Mine.gguf", "--json"]));
    assert_eq!(pulled["name"], "mine");
    let listed = json(&cogn(folder.path(), &["models", "list", "--json"]));
    let rows = listed.as_array().expect("a list");
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect("listed");
    assert_eq!(row("mine")["installed"], true);
    assert_eq!(row("mine")["sha256"], pulled["sha256"]);
    assert_eq!(row("smollm2-135m-instruct")["installed"], false);
    assert_eq!(row("smollm2-135m-instruct")["bytes"], 98_362_432);
    let people = cogn(folder.path(), &["models", "list"]);
    let people = String::from_utf8_lossy(&people.stdout).into_owned();
    assert!(
        people.contains("not installed") && people.contains("installed at"),
        "{people}"
    );
    assert!(cogn(folder.path(), &["models", "rm", "mine"]).status.success());
    let again = cogn(folder.path(), &["models", "rm", "mine"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        stderr(&again).contains("`cogn models list`"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn names_cannot_escape_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("x.gguf"), weights()).expect("written");
    for name in ["../x", "a/b", "", ".hidden", "ä"] {
        let output = cogn(folder.path(), &["models", "pull", "x.gguf", "--name", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    let typo = cogn(folder.path(), &["models", "pull", "smollm2-135m-instruc"]);
    assert!(
        stderr(&typo).contains("did you mean `smollm2-135m-instruct`?"),
        "{}",
        stderr(&typo)
    );
}

#[test]
fn concurrent_pulls_of_one_model_do_not_conflict() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("models")).expect("a folder");
    fs::write(folder.path().join("x.gguf"), weights()).expect("written");
    let lock = fs::File::create(folder.path().join("models/x.lock")).expect("a file");
    lock.lock().expect("locked");
    let output = cogn(folder.path(), &["models", "pull", "x.gguf"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("another process"), "{}", stderr(&output));
    lock.unlock().expect("unlocked");
    assert!(
        cogn(folder.path(), &["models", "pull", "x.gguf"])
            .status
            .success()
    );
}

/// One Q4_1 tensor of 32 weights: scale 0.5, minimum -4, and nibbles.
fn q4_1_weights() -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    for count in [1_u64, 0, 1] {
        bytes.extend(count.to_le_bytes());
    }
    bytes.extend([b"t".as_slice(), &1_u32.to_le_bytes(), &32_u64.to_le_bytes()].concat());
    bytes.extend([3_u32.to_le_bytes().as_slice(), &[0; 8]].concat());
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes.extend([0x00, 0x38, 0x00, 0xc4]);
    bytes.extend(b"0123456789abcdef");
    bytes
}

/// The same tensor as Q4_0, which stores the minimum of -8 scales implicitly.
fn is_q4_0(bytes: &[u8]) -> bool {
    let start = q4_1_weights().len() - 20;
    bytes.get(start..start + 18) == Some(&[b"\0\x38".as_slice(), b"0123456789abcdef"].concat())
}

#[test]
fn q4_1_weights_are_requantised_once_and_verified_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(q4_1_weights(), None, true);
    let url = format!("http://{}/tiny.gguf", server.address);
    let as_is = json(&cogn(
        folder.path(),
        &["models", "pull", &url, "--as-is", "--json"],
    ));
    let path = as_is["path"].as_str().expect("a path");
    assert_eq!(fs::read(path).expect("the weights"), q4_1_weights());
    assert!(as_is["installed_sha256"].is_null(), "{as_is}");
    // Weights that were installed as they are need no second download.
    let digest = as_is["sha256"].as_str().expect("a digest");
    let pull = ["models", "pull", &url, "--sha256", digest, "--json"];
    let pulled = json(&cogn(folder.path(), &pull));
    assert_eq!(server.heads.lock().expect("unpoisoned").len(), 1);
    assert_eq!(
        (&pulled["already"], &pulled["sha256"]),
        (&false.into(), &as_is["sha256"])
    );
    assert!(pulled["installed_sha256"].is_string(), "{pulled}");
    assert!(is_q4_0(&fs::read(path).expect("the weights")));
    let again = json(&cogn(folder.path(), &pull));
    assert_eq!(again["already"], true);
    assert_eq!(again["installed_sha256"], pulled["installed_sha256"]);
    // A pull into an empty folder gives the same file.
    fs::remove_dir_all(folder.path().join("models")).expect("removed");
    let fresh = json(&cogn(folder.path(), &pull));
    assert_eq!(fresh["installed_sha256"], pulled["installed_sha256"]);
    assert!(is_q4_0(&fs::read(path).expect("the weights")));
    let mut left: Vec<_> = fs::read_dir(folder.path().join("models"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    left.sort();
    assert_eq!(left, ["tiny.gguf", "tiny.json"]);
}

#[test]
fn installed_weights_with_a_wrong_digest_are_not_requantised() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(q4_1_weights(), None, true);
    let url = format!("http://{}/tiny.gguf", server.address);
    let as_is = json(&cogn(
        folder.path(),
        &["models", "pull", &url, "--as-is", "--json"],
    ));
    let path = as_is["path"].as_str().expect("a path");
    let mut changed = q4_1_weights();
    *changed.last_mut().expect("bytes") = 0;
    fs::write(path, &changed).expect("written");
    json(&cogn(folder.path(), &["models", "pull", &url, "--json"]));
    assert_eq!(fs::read(path).expect("the weights"), changed);
}

#[test]
fn damaged_weights_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut truncated = q4_1_weights();
    truncated.truncate(truncated.len() - 1);
    fs::write(folder.path().join("x.gguf"), truncated).expect("written");
    let output = cogn(folder.path(), &["models", "pull", "x.gguf"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is damaged"), "{}", stderr(&output));
    assert!(
        !folder
            .path()
            .join("models/x.gguf")
            .try_exists()
            .expect("readable")
    );
}
