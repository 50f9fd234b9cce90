//! The server against its OpenAPI document: schemathesis generates requests from the served document and
//! validates every response. The tool comes from the Python registry, pinned by hashes, and is cached in the
//! user's cache folder.

use std::fs;
use std::process::Command;

use crate::harness::{Server, Stage, input};
use crate::keys::key;
use crate::test_tools::{python, succeed};

const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// Requests of each kind for each operation; `cargo x test --long` runs more.
fn examples() -> &'static str {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => "300",
        None => "50",
    }
}

/// Runs schemathesis on a server, with these additional arguments.
async fn conforms(stage: &Stage, server: &Server, run: reqwest::Response, more: &[&str]) {
    let tool = python("schemathesis", "schemathesis.txt").join("bin/schemathesis");
    let session = run.headers()["x-cognitive-session"].to_str().unwrap();
    // Existing names, so that requests pass the lookup of module and run.
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
        .args(more)
        .arg(format!("{}/openapi.json", server.url))
        .current_dir(stage.path(""));
    tokio::task::spawn_blocking(move || succeed(&mut command))
        .await
        .unwrap();
}

#[tokio::test]
async fn every_response_conforms_to_openapi_document() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let run = server.execute("counter", &input()).send().await.unwrap();
    conforms(&stage, &server, run, &[]).await;
}

/// The same with a key, and without it.
#[tokio::test]
async fn every_response_conforms_where_a_key_is_required() {
    let stage = Stage::new();
    let server = stage.serve_with(&["--require-auth"], &[&stage.talker(0)]);
    let key = key(&stage, &[]);
    let bearer = format!("Authorization: Bearer {key}");
    for header in [&["--header", &bearer][..], &[]] {
        let run = server.execute("counter", &input()).bearer_auth(&key);
        conforms(&stage, &server, run.send().await.unwrap(), header).await;
    }
}
