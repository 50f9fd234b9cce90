//! Reload of modules, configuration and certificates, and log output without secrets.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use ir::Dialect;
use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};

use crate::harness::{Server, Stage, assemble, data, input};
use crate::vendor_client::{ask, question};

const CHAT: Dialect = Dialect::OpenaiChat;

/// Repeats a request until the condition holds; the deadline fails the test otherwise.
pub(crate) async fn until(mut ask: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !ask().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking)
        .await
        .unwrap();
}

async fn version(server: &Server, module: &str) -> Value {
    let response = server.get(&format!("/v1/modules/{module}")).send().await.unwrap();
    let envelope: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    envelope["data"]["version"].clone()
}

pub(crate) async fn refused(server: &Server) -> bool {
    let text = server.get("/metrics").send().await.unwrap().text().await.unwrap();
    text.contains(r#"cogn_config_reloads_total{outcome="refused"}"#)
}

#[tokio::test]
async fn modules_are_reloaded_and_broken_ones_are_not() {
    let stage = Stage::new();
    stage.configure("[server]\nreload_ms = 20\n");
    let server = stage.serve(&[&stage.talker(5)]);
    assert_eq!(version(&server, "counter").await, "1.0.0");
    let stream = server
        .execute("counter", &input())
        .header("accept", "application/x-ndjson");
    let running = stream.send().await.unwrap();

    let manifest = stage.path("modules/counter/module.yaml");
    let good = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, good.replace("1.0.0", "1.1.0")).unwrap();
    until(async || version(&server, "counter").await == "1.1.0").await;
    // A run that was started before continues.
    let text = running.text().await.unwrap();
    assert_eq!(assemble(&text).envelope["data"], data());

    fs::write(&manifest, "name: counter\nversion: [").unwrap();
    until(async || refused(&server).await).await;
    assert_eq!(version(&server, "counter").await, "1.1.0");
    let run = server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(run.status(), 200);

    stage.module("newcomer", "deny", "both");
    until(async || version(&server, "newcomer").await == "1.0.0").await;
    fs::remove_dir_all(stage.path("modules/waiter")).unwrap();
    until(async || version(&server, "waiter").await.is_null()).await;
}

/// A module's name is the one in its manifest, independent of its path.
#[tokio::test]
async fn broken_module_keeps_its_previous_version_in_any_folder() {
    let stage = Stage::new();
    stage.configure("[server]\nreload_ms = 20\n");
    fs::rename(stage.path("modules/counter"), stage.path("modules/elsewhere")).unwrap();
    let server = stage.serve(&[&stage.talker(0)]);
    assert_eq!(version(&server, "counter").await, "1.0.0");
    let manifest = stage.path("modules/elsewhere/module.yaml");
    let good = fs::read_to_string(&manifest).unwrap();
    // One with an unknown tier, and one that cannot be parsed.
    let mistyped = good.replace("1.0.0", "1.0.1").replace("tier: ", "tier: x");
    assert_ne!(mistyped, good.replace("1.0.0", "1.0.1"));
    for broken in [&mistyped, "name: counter\nversion: ["] {
        fs::write(&manifest, broken).unwrap();
        until(async || refused(&server).await).await;
        assert_eq!(version(&server, "counter").await, "1.0.0");
    }
    // It is still available when other modules change, and is reloaded when it is fixed.
    stage.module("newcomer", "deny", "both");
    until(async || version(&server, "newcomer").await == "1.0.0").await;
    assert_eq!(version(&server, "counter").await, "1.0.0");
    fs::write(&manifest, good.replace("1.0.0", "1.1.0")).unwrap();
    until(async || version(&server, "counter").await == "1.1.0").await;
}

#[tokio::test]
async fn valid_configuration_is_reloaded_on_sighup() {
    let stage = Stage::new();
    let other = stage.script(
        "other",
        &json!([{"reply": crate::harness::REPLY.replace("two words", "other words")}]),
    );
    let first = stage.talker(0);
    let config = |script: &str| {
        let path = script.strip_prefix("scripted:").unwrap();
        format!(
            "[[backends]]\nname = \"one\"\nkind = \"scripted\"\nscript = \"{path}\"\n[server]\nreload_ms = 0\n"
        )
    };
    stage.configure(&config(&first));
    let server = stage.serve(&[]);
    let explain = async || {
        let response = server.execute("counter", &input()).send().await.unwrap();
        let envelope: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        envelope["meta"]["explain"].clone()
    };
    let hang_up = || {
        let pid = server.pid().to_string();
        assert!(
            Command::new("kill")
                .args(["-HUP", &pid])
                .status()
                .unwrap()
                .success()
        );
    };
    assert_eq!(explain().await, "two words");
    stage.configure("[server]\nlistne = 1\n");
    hang_up();
    until(async || refused(&server).await).await;
    assert_eq!(explain().await, "two words");
    stage.configure(&config(&other));
    hang_up();
    until(async || explain().await == "other words").await;
}

/// Authentication, concurrency limits, gate and fetch settings: changed ones apply to the next request.
#[tokio::test]
async fn auth_limits_gate_and_media_settings_are_reloaded() {
    let stage = Stage::new();
    for file in module::conformance::server::kit() {
        if let Some(path) = file.path.strip_prefix("modules/conformance-picture/") {
            let folder = stage.path("modules/conformance-picture");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(path), file.text).unwrap();
        }
    }
    let script = stage.talker(20);
    let path = script.strip_prefix("scripted:").unwrap();
    let config = |more: &str| {
        let backend = format!("[[backends]]\nname = \"one\"\nkind = \"scripted\"\nscript = {path:?}\n");
        stage.configure(&format!("{backend}[server]\nreload_ms = 20\n{more}"));
    };
    config("");
    let server = stage.serve(&[]);
    let run = async || server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(run().await.status(), 200);

    config("[auth]\nrequired = true\n");
    until(async || run().await.status() == 401).await;
    config("[gate]\nmin_confidence = 0.99\n");
    until(async || run().await.status() == 200).await;
    until(async || {
        let envelope: Value = serde_json::from_slice(&run().await.bytes().await.unwrap()).unwrap();
        envelope.get("_review").is_some()
    })
    .await;

    config("[limits]\nruns_max = 1\nqueue_max = 0\n");
    until(async || {
        let held = server
            .execute("counter", &input())
            .header("accept", "text/event-stream");
        let held = held.send().await.unwrap();
        let second = run().await;
        drop(held.text().await);
        second.status() == 503
    })
    .await;

    let reason = async || {
        let image = json!({"type": "url", "url": "http://127.0.0.1:9/a.png", "media_type": "image/png"});
        let body = json!({"text": "two words", "images": [image]});
        let response = server.execute("conformance-picture", &body).send().await.unwrap();
        let envelope: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        envelope["error"]["details"]["reason"].clone()
    };
    assert_eq!(reason().await, "blocked_address");
    config("[media]\nfetch = \"off\"\n");
    until(async || reason().await == "fetch_disabled").await;
}

/// A request waits for its permit while an alias and the only model of the fleet are replaced together: it is
/// answered with the alias and the fleet of its arrival, and the next one with the new ones.
#[tokio::test]
async fn reload_of_aliases_and_fleet_is_atomic_for_a_waiting_request() {
    let upstream = MockServer::with_responder(|earlier, request| {
        let choice =
            json!({"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"});
        let answer = json!({"id": "c", "object": "chat.completion", "created": 1,
            "model": request.json()["model"], "choices": [choice]});
        let response = ScriptedResponse::good("application/json", answer.to_string());
        match earlier {
            0 => response.after(Duration::from_secs(2)),
            _ => response,
        }
    });
    let stage = Stage::new();
    let config = |model: &str| {
        format!(
            "[[backends]]\nname = \"one\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"{model}\"\n\
             [aliases]\nsmart = \"{model}\"\n[limits]\nruns_max = 1\n[server]\nreload_ms = 20\n",
            upstream.url("")
        )
    };
    stage.configure(&config("old"));
    let server = stage.serve(&[]);
    let ask_smart = async || ask(&server, CHAT, &question(CHAT, "smart", "hi")).await;
    let reloaded_between = async || {
        until(async || upstream.received().len() == 1).await;
        // The second request waits for the permit of the first.
        tokio::time::sleep(Duration::from_millis(300)).await;
        stage.configure(&config("new"));
        until(async || {
            let text = server.get("/metrics").send().await.unwrap().text().await.unwrap();
            text.contains(r#"cogn_config_reloads_total{outcome="taken"}"#)
        })
        .await;
        assert_eq!(upstream.received().len(), 1, "the second request waits");
    };
    let delayed = async {
        until(async || upstream.received().len() == 1).await;
        ask_smart().await
    };
    let (first, waited, ()) = tokio::join!(ask_smart(), delayed, reloaded_between());
    assert_eq!(first.status(), 200);
    assert_eq!(waited.status(), 200, "{}", waited.text().await.unwrap());
    assert_eq!(ask_smart().await.status(), 200);
    let models: Vec<Value> = upstream
        .received()
        .iter()
        .map(|request| request.json()["model"].clone())
        .collect();
    assert_eq!(models, ["old", "old", "new"]);
}

/// Settings that require a restart are named in the log.
#[tokio::test]
async fn settings_that_need_a_restart_are_logged() {
    let stage = Stage::new();
    stage.configure("[server]\nreload_ms = 20\n");
    let mut command = stage.serving(&[], &[&stage.talker(0)]);
    command.stderr(fs::File::create(stage.path("log")).unwrap());
    let server = Server::spawn(command);
    until(async || {
        // Written repeatedly: the time of the first scan is not observable.
        stage.configure("[server]\nreload_ms = 20\nconnections_max = 7\n[journal]\nkeep_days = 3\n");
        let log = fs::read_to_string(stage.path("log")).unwrap();
        let logged = |name: &str| {
            log.lines()
                .any(|line| line.contains("takes effect at the next start") && line.contains(name))
        };
        logged("server.connections_max") && logged("journal") && !logged("server.listen")
    })
    .await;
    drop(server);
}

fn certificate(stage: &Stage) -> reqwest::Certificate {
    let made = rcgen::generate_simple_self_signed([String::from("localhost")]).unwrap();
    fs::write(stage.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    fs::write(stage.path("cert.pem"), made.cert.pem()).unwrap();
    reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
}

#[tokio::test]
async fn certificates_are_reloaded() {
    let stage = Stage::new();
    let old = certificate(&stage);
    stage
        .configure("[server]\nreload_ms = 20\n[server.tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n");
    let server = stage.serve(&[&stage.talker(0)]);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let port = server.address().rsplit_once(':').unwrap().1;
    let url = format!("https://localhost:{port}/healthz");
    let answers = async |trusted: &reqwest::Certificate| {
        let client = reqwest::Client::builder()
            .tls_certs_only([trusted.clone()])
            .build()
            .unwrap();
        client.get(&url).send().await.is_ok_and(|response| {
            assert_eq!(response.version(), reqwest::Version::HTTP_2);
            response.status() == 200
        })
    };
    assert!(answers(&old).await);
    fs::write(stage.path("cert.pem"), "nothing of the kind").unwrap();
    let new = certificate(&stage);
    until(async || answers(&new).await).await;
    assert!(!answers(&old).await);
}

/// A back-end that repeats its caller's key in an error, as some do.
fn spawn_key_echo(canary: &'static str) -> SocketAddr {
    let echo = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = echo.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in echo.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 16 * 1024];
            let size = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..size]).into_owned();
            let key = if head.contains(canary) { canary } else { "no key" };
            let body = json!({"error": {"message": format!("bad key {key}")}}).to_string();
            let answer = format!(
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            std::io::Write::write_all(&mut stream, answer.as_bytes()).ok();
        }
    });
    address
}

#[test]
fn log_is_structured_and_contains_no_secrets() {
    const CANARY: &str = "sk-canary-5f1d0c";
    let stage = Stage::new();
    let address = spawn_key_echo(CANARY);
    stage.configure(&format!(
        "[[credentials]]\nname = \"key\"\nenv = \"CANARY_KEY\"\n\
         [[backends]]\nname = \"echo\"\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://{address}/v1\"\ncredential = \"key\"\n\
         [server]\nlog = \"json\"\n"
    ));
    let mut command = stage.cogn();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--journal"])
        .arg(stage.path("journal.db"))
        .env("CANARY_KEY", CANARY)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap();
    let sent = Command::new("curl")
        .args(["-s", "-d", r#"{"text": "x"}"#])
        .arg(format!("{url}/v1/modules/counter/execute"))
        .output()
        .unwrap();
    let answer = String::from_utf8(sent.stdout).unwrap();
    assert!(answer.contains(r#""ok":false"#), "{answer}");
    assert!(!answer.contains(CANARY), "{answer}");
    // Produces a log line in any case.
    stage.configure("[server]\nlistne = 1\n");
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-HUP", &pid])
            .status()
            .unwrap()
            .success()
    );
    let mut log = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !log.contains("reload failed") {
        assert_ne!(lines.read_line(&mut log).unwrap(), 0, "{log}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!log.contains(CANARY), "{log}");
    assert!(log.contains("a run failed"), "{log}");
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(
            event["level"].is_string() && event["timestamp"].is_string(),
            "{line}"
        );
    }
}
