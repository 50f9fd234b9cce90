//! `cogn conformance --url`: our own server passes every check, and a server with one defect fails the check
//! for it. The defective servers are ours, behind a proxy that modifies requests or responses.

mod defect;
mod websocket_proxy;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use futures::StreamExt;
use module::conformance::server::{
    Capability, Check, CheckEnd, ListedModule, Method, ServerRequest, ServerResponse as Said, TestModules,
    Transport, checks, kit,
};
use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};

use self::defect::{defects, go_between, leave, pass};

use crate::harness::{Server, binary};

/// A server with the modules of the kit. `hasty` removes the delays.
fn serve(folder: &Path, hasty: bool) -> Server {
    for file in kit() {
        let path = folder.join(file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = match hasty {
            true => file.text.replace("delay_ms: 2", "delay_ms: 0"),
            false => String::from(file.text),
        };
        fs::write(path, text).unwrap();
    }
    let mut command = Command::new(binary());
    command.current_dir(folder);
    command.args([
        "--modules",
        "modules",
        "serve",
        "--quiet",
        "--listen",
        "127.0.0.1:0",
    ]);
    command.args(["--journal", "journal.db", "--backend", "scripted:script.yaml"]);
    Server::spawn(command)
}

fn conformance(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(binary())
        .arg("conformance")
        .args(arguments)
        .env_remove("TEST_KEY")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn own_server_passes_every_check() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), false);
    let (code, printed, stderr) = conformance(&["--level", "4", "--json", "--url", &server.url]);
    assert_eq!(code, Some(0), "{printed}{stderr}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let rows = report["checks"].as_array().unwrap();
    let not_passed: Vec<&Value> = rows.iter().filter(|row| row["outcome"] != "passed").collect();
    assert!(not_passed.is_empty(), "{not_passed:#?}");
    assert_eq!(rows.len(), checks().len());
    assert_eq!(report["proven"], true);
    let schema = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/reference/schemas/conformance-server.schema.json"),
    );
    let schema: Value = serde_json::from_str(&schema.unwrap()).unwrap();
    let schema = jsonschema::draft7::new(&schema).unwrap();
    assert!(schema.is_valid(&report), "{report:#}");

    let (code, printed, _) = conformance(&["--url", &server.url]);
    assert_eq!(code, Some(0));
    assert!(printed.contains("passed recovery.headers\n"), "{printed}");
    assert!(printed.trim_end().ends_with("conforms at level 4"), "{printed}");
}

#[test]
fn kit_is_written_without_overwriting_files() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("kit");
    let (code, printed, _) = conformance(&["--emit-modules", target.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    assert!(printed.contains("serve --backend scripted:"), "{printed}");
    for file in kit() {
        assert_eq!(fs::read_to_string(target.join(file.path)).unwrap(), file.text);
    }
    let valid = Command::new(binary())
        .args(["validate", "--v22"])
        .arg(target.join("modules/conformance-both"))
        .arg(target.join("modules/conformance-sync"))
        .arg(target.join("modules/conformance-streaming"))
        .arg(target.join("modules/conformance-picture"))
        .output()
        .unwrap();
    assert!(valid.status.success(), "{valid:?}");
    assert_eq!(
        conformance(&["--emit-modules", target.to_str().unwrap()]).0,
        Some(0)
    );
    fs::write(target.join("script.yaml"), "mine").unwrap();
    let (code, _, stderr) = conformance(&["--emit-modules", target.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("already exists with different content"),
        "{stderr}"
    );
    assert_eq!(fs::read_to_string(target.join("script.yaml")).unwrap(), "mine");
}

#[test]
fn unusable_target_exits_with_2_and_reason() {
    let (code, _, stderr) = conformance(&["--url", "http://127.0.0.1:9"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("cannot be reached"), "{stderr}");
    assert_eq!(conformance(&["--url", "nonsense"]).0, Some(2));
    let none = MockServer::with_responses(ScriptedResponse::good("application/json", r#"{"modules": []}"#));
    let (code, _, stderr) = conformance(&["--url", &none.url("")]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--emit-modules"), "{stderr}");
    let closed =
        ScriptedResponse::response("401 Unauthorized", &[("content-type", "application/json")], "{}");
    let closed = MockServer::with_responses(closed);
    let (code, _, stderr) = conformance(&["--url", &closed.url("")]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--key-env"), "{stderr}");
    let (code, _, stderr) = conformance(&["--url", &closed.url(""), "--key-env", "TEST_KEY"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("environment variable TEST_KEY is"), "{stderr}");
}

#[test]
fn named_module_is_checked_as_far_as_it_supports() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), true);
    let input = folder.path().join("input.json");
    fs::write(&input, r#"{"text": "my own"}"#).unwrap();
    let named = ["--module", "conformance-both", "--input", input.to_str().unwrap()];
    let flags = ["--json", "--url", &server.url];
    let (code, printed, stderr) = conformance(&[&named[..], &flags].concat());
    assert_eq!(code, Some(1), "{stderr}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&report["failed"], &report["proven"]), (&json!(0), &json!(false)));
    let skipped = report["checks"].as_array().unwrap().iter();
    let skipped: Vec<&Value> = skipped.filter(|row| row["outcome"] == "skipped").collect();
    assert!(skipped.iter().all(|row| row["module"].is_null()), "{skipped:#?}");
    assert!(skipped.iter().any(|row| row["name"] == "media.type"));

    // Without a given input, a minimal input is generated from the schema.
    let own = folder.path().join("modules/own");
    fs::create_dir_all(&own).unwrap();
    for name in ["module.yaml", "prompt.md", "schema.json"] {
        let text = fs::read_to_string(folder.path().join("modules/conformance-both").join(name)).unwrap();
        fs::write(
            own.join(name),
            text.replace("name: conformance-both", "name: own"),
        )
        .unwrap();
    }
    for name in ["both", "sync", "streaming", "picture"] {
        fs::remove_dir_all(folder.path().join(format!("modules/conformance-{name}"))).unwrap();
    }
    drop(server);
    let mut command = Command::new(binary());
    command.current_dir(folder.path());
    command.args([
        "--modules",
        "modules",
        "serve",
        "--quiet",
        "--listen",
        "127.0.0.1:0",
    ]);
    command.args(["--journal", "other.db", "--backend", "scripted:script.yaml"]);
    let server = Server::spawn(command);
    let (_, printed, stderr) = conformance(&["--json", "--url", &server.url]);
    let report: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{stderr}"));
    assert_eq!(report["failed"], 0, "{printed}");
    assert_eq!(report["checks"][0]["module"], "own");
}

async fn send(url: &str, ask: &ServerRequest) -> Said {
    assert_eq!(ask.over, Transport::Http);
    let client = reqwest::Client::new();
    let address = format!("{url}{}", ask.path);
    let mut request = match ask.method {
        Method::Get => client.get(address),
        Method::Post => client.post(address),
    };
    for (name, value) in &ask.headers {
        request = request.header(*name, value);
    }
    if let Some(body) = &ask.body {
        request = request.body(body.to_string());
    }
    let response = request.send().await.unwrap();
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), String::from(value.to_str().unwrap())));
    let mut responses = Said {
        status: response.status().as_u16(),
        headers: headers.collect(),
        body: Vec::new(),
    };
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        responses.body.extend_from_slice(&piece.unwrap());
        if ask.is_enough(&responses.body) {
            break;
        }
    }
    responses
}

/// The modules of the kit, without a request to the (possibly defective) server.
fn subjects() -> TestModules {
    let listed = ["both", "sync", "streaming", "picture"].map(|name| {
        let kinds = if name == "picture" {
            json!(["text", "image"])
        } else {
            json!(["text"])
        };
        let described = json!({
            "response_mode": if name == "picture" { "both" } else { name },
            "manifest": {"modalities": {"input": kinds, "constraints": {"max_image_size_mb": 0.0625}}}
        });
        ListedModule::read(&format!("conformance-{name}"), &[&described], None)
    });
    TestModules::new(listed.to_vec())
}

async fn make(url: &str, check: &Check) -> Result<(), CheckEnd> {
    let subject = subjects().choose(check.need).expect("the kit has everything");
    let mut responses = Vec::new();
    while let Some(ask) = check.next(&subject, &responses)? {
        responses.push(send(url, &ask).await);
    }
    Ok(())
}

#[tokio::test]
async fn every_defect_is_detected_by_its_check() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), true);
    let all = checks();
    let mut caught = BTreeSet::new();
    for (defect, spoil, names) in defects() {
        let broken = go_between(&server, spoil);
        for name in names {
            let check = all.iter().find(|check| check.name == *name).expect(name);
            let outcome = make(&broken.url(""), check).await;
            assert!(
                matches!(outcome, Err(CheckEnd::Failed(_))),
                "{defect}: {name} reports {outcome:?}"
            );
            caught.insert(*name);
        }
    }
    let sound = go_between(&server, (leave, pass));
    for check in all.iter().filter(|check| check.name != "chunks.websocket") {
        let outcome = make(&sound.url(""), check).await;
        assert_eq!(
            outcome,
            Ok(()),
            "{} reports a defect where there is none",
            check.name
        );
        assert!(
            caught.contains(check.name),
            "{} has never caught anything",
            check.name
        );
    }
}

/// A defect that exists only on the WebSocket is reported only for the WebSocket.
#[test]
fn websocket_defect_is_detected_by_its_check() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), true);
    for (spoil, expected) in [
        (websocket_proxy::SOUND, "passed chunks.websocket\n"),
        (websocket_proxy::LOST, "failed chunks.websocket: "),
        (websocket_proxy::CHANGED, "failed chunks.websocket: "),
        (websocket_proxy::ENDLESS, "failed chunks.websocket: "),
    ] {
        let broken = websocket_proxy::proxy_url(&server, spoil);
        let (_, printed, stderr) = conformance(&["--timeout", "5s", "--url", &broken]);
        assert!(printed.contains(expected), "{spoil:?}: {printed}{stderr}");
        let lines = printed.to_lowercase();
        let failed = lines.lines().filter(|line| line.starts_with("failed ")).count();
        assert_eq!(
            failed,
            usize::from(expected.starts_with("failed")),
            "{spoil:?}: {printed}"
        );
    }
}

#[test]
fn report_describes_the_defect() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), true);
    let broken = go_between(&server, (|r| r.forget("/_recovery", "last_checkpoint"), pass));
    let (code, printed, _) = conformance(&["--url", &broken.url("")]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("FAILED recovery.mismatch: "), "{printed}");
    assert!(
        printed.contains("it must: a checkpoint that does not match"),
        "{printed}"
    );
    assert!(printed.contains("level 4 is not proven"), "{printed}");
    assert!(Capability::ALL.iter().all(|need| !need.description().is_empty()));
}

#[test]
fn reference_lists_every_check() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/conformance-server.md");
    let page = fs::read_to_string(page).unwrap();
    let listed: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `") && !line.contains("`--"))
        .collect();
    let rows = checks().into_iter().map(|check| {
        let requires = if check.must { "must" } else { "should" };
        format!("| `{}` | {requires} | {} |", check.name, check.rule)
    });
    assert_eq!(listed, rows.collect::<Vec<_>>());
}
