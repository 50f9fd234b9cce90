//! The server against its own description: schemathesis makes requests from the served OpenAPI document
//! and holds every answer against it. The tool comes from the Python registry, pinned by hashes, and is
//! kept in the user's cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Stage, input};

const REQUIREMENTS: &str = "tests/schemathesis.txt";
const FOLDER: &str = "schemathesis-4.32.5";

const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// Requests of each kind for each operation; `cargo x test --long` asks for more.
fn examples() -> &'static str {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => "300",
        None => "8",
    }
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("the command runs");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}\n{said}");
}

/// The tool, installed if it is not there yet.
fn tool() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let cache = cache.expect("a cache folder").join("cogn");
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join("schemathesis.lock")).unwrap();
    lock.lock().unwrap();
    let folder = cache.join(FOLDER);
    let ready = folder.join("ready");
    if !ready.is_file() {
        fs::remove_dir_all(&folder).ok();
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join(REQUIREMENTS);
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--require-hashes", "--requirement"]);
        succeed(pip.arg(requirements));
        fs::write(&ready, "").unwrap();
    }
    folder.join("bin/schemathesis")
}

#[tokio::test]
async fn every_answer_is_one_that_the_description_allows() {
    let tool = tool();
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let run = server.execute("counter", &input()).send().await.unwrap();
    let session = run.headers()["x-cognitive-session"].to_str().unwrap();
    // Real names, so that requests get past the first door.
    let config = stage.path("schemathesis.toml");
    let names = format!("[parameters]\nname = \"counter\"\nsession_id = \"{session}\"\n");
    fs::write(&config, names).unwrap();
    let mut command = Command::new(tool);
    command
        .arg("--config-file")
        .arg(&config)
        .args(["run", "--no-color", "--seed", "1", "--phases", "coverage,fuzzing"])
        .args(["--request-timeout", "20", "--max-examples", examples()])
        .args(["--checks", CHECKS])
        .arg(format!("{}/openapi.json", server.url))
        .current_dir(stage.path(""));
    tokio::task::spawn_blocking(move || succeed(&mut command))
        .await
        .unwrap();
}
