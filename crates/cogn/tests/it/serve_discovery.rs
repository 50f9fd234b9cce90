//! `cogn serve`: health, discovery, CORS, stream limits, model selection and path aliases.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use module::envelope::{Profile, check_structure};
use serde_json::{Value, json};

use crate::harness::{Stage, assemble, data, input};
use crate::keys::key;

async fn body_of(response: reqwest::Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// `COGN_GENERATE=1` writes the file instead.
#[tokio::test]
async fn generated_openapi_document_is_served() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let served = server.get("/openapi.json").send().await.unwrap();
    assert_eq!(served.headers()["content-type"], "application/json");
    let served = served.text().await.unwrap();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    if std::env::var_os("COGN_GENERATE").is_some() {
        fs::write(&path, &served).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap();
    assert!(
        served == checked_in,
        "docs/reference/openapi.json is stale: run `cargo x gen`"
    );
    let document: Value = serde_json::from_str(&served).unwrap();
    assert_eq!(document["openapi"], "3.1.0");

    let page = server.get("/docs").send().await.unwrap().text().await.unwrap();
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(page.contains(path.as_str()), "{path} is not on the page");
    }
    for foreign in ["http://", "https://", "<script", "@import", "url("] {
        assert!(!page.contains(foreign), "the page holds {foreign}");
    }
}

/// The address is on stdout, for scripts; the rest is for people.
#[test]
fn server_prints_what_it_serves_and_where() {
    let stage = Stage::new();
    let mut command = stage.cogn();
    command.args(["serve", "--listen", "127.0.0.1:0", "--backend", &stage.talker(0)]);
    command.arg("--journal").arg(stage.path("data/journal.db"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let url = first.trim().strip_prefix("listening on ").unwrap().to_owned();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let lines: Vec<String> = lines
        .map(Result::unwrap)
        .filter(|line| !line.contains("INFO"))
        .take(4)
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let data = stage.path("data");
    let expected = [
        String::from("modules      actor, counter, ticker, waiter"),
        String::from("back-ends    talker0"),
        format!("documents    {url}/docs"),
        format!("data folder  {}", data.display()),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let root = server
        .get("/")
        .header("accept", "text/html,*/*;q=0.8")
        .send()
        .await
        .unwrap();
    assert_eq!(root.status(), 200);
    assert_eq!(root.headers()["content-type"], "text/html; charset=utf-8");
    assert!(root.text().await.unwrap().contains("<a href=\"/docs\">"));
    let root = body_of(server.get("/").send().await.unwrap()).await;
    assert_eq!(root["data"]["name"], "cogn");
    assert!(root["data"]["links"]["/v1/modules"].is_string(), "{root}");
    let head = reqwest::Client::new()
        .head(format!("{}/", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(head.status(), 200);
    assert!(head.bytes().await.unwrap().is_empty());
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).send().await.unwrap().status(), 200, "{path}");
    }
    let run = server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(run.status(), 200);
    let figures = server.get("/metrics").send().await.unwrap().text().await.unwrap();
    let line = r#"cogn_http_requests_total{method="POST",route="/v1/modules/{name}/execute",status="200"} 1"#;
    assert!(figures.contains(line), "{figures}");
    assert!(figures.contains("cogn_modules 4"), "{figures}");
    assert!(figures.contains("cogn_http_request_seconds_bucket"), "{figures}");
}

#[tokio::test]
async fn capabilities_list_working_transports() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let envelope = body_of(server.get("/v1/capabilities").send().await.unwrap()).await;
    let said = &envelope["data"];
    assert_eq!(said["runtime"], "cogn");
    assert_eq!(
        said["spec_versions"],
        json!(["2.5", "2.2", "2.1", "2.0", "1", "0"])
    );
    let transports = said["capabilities"]["supported_transports"].as_array().unwrap();
    for transport in transports {
        let accept = match transport.as_str().unwrap() {
            "sse" => "text/event-stream",
            "ndjson" => "application/x-ndjson",
            "websocket" => continue,
            other => panic!("untested transport {other}"),
        };
        let request = server.execute("counter", &input()).header("accept", accept);
        let text = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(assemble(&text).envelope["data"], data(), "{accept}");
    }
    for dialect in said["capabilities"]["vendor_dialects"].as_array().unwrap() {
        let dialect: ir::Dialect = dialect.as_str().unwrap().parse().unwrap();
        let body = crate::vendor_client::question(dialect, "m", "hi");
        let answer = crate::vendor_client::ask(&server, dialect, &body).await;
        assert!(
            !crate::vendor_client::read(dialect, answer)
                .await
                .text()
                .is_empty(),
            "{dialect}"
        );
    }
    assert_eq!(said["conformance"]["vectors_level"], 4, "{said}");
}

#[tokio::test]
async fn path_aliases_run_the_module_of_the_body() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let post = |path: &str, body: &Value| server.post(path).body(body.to_string());
    let named = json!({"module": "counter", "input": input()});
    let envelope = body_of(post("/run", &named).send().await.unwrap()).await;
    assert_eq!(envelope["data"], data());
    let free = json!({"module": "counter", "args": "two words"});
    let envelope = body_of(post("/run", &free).send().await.unwrap()).await;
    assert_eq!(envelope["data"], data());
    let stream = post("/run/stream", &named).send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let session = stream.headers()["x-cognitive-session"].clone();
    assert_eq!(assemble(&stream.text().await.unwrap()).envelope["data"], data());
    let rest = post("/run/stream", &named)
        .header("x-cognitive-recovery-session", &session)
        .header("x-cognitive-recovery-seq", "2");
    let rest = rest.send().await.unwrap();
    assert_eq!(rest.headers()["x-cognitive-session"], session);
    let rest = rest.text().await.unwrap();
    assert!(rest.contains(r#""resume_from_seq":3,"#), "{rest}");
    for (body, status, code) in [
        (json!({"module": "no-such-module"}), 404, "E4006"),
        (json!({}), 400, "E1001"),
        (
            json!({"module": "counter", "input": {}, "args": ""}),
            400,
            "E1001",
        ),
        (json!({"module": "counter", "provider": "openai"}), 400, "E1001"),
    ] {
        let response = post("/run", &body).send().await.unwrap();
        assert_eq!(response.status(), status, "{body}");
        assert_eq!(body_of(response).await["error"]["code"], code, "{body}");
    }
}

#[tokio::test]
async fn invalid_request_gets_an_error_envelope() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let execute = || server.execute("counter", &input());
    let path = "/v1/modules/counter/execute";
    for (request, status, code) in [
        (
            execute().header("x-cognitive-response-mode", "both"),
            400,
            "E1004",
        ),
        (
            server.post(&format!("{path}?response_mode=fast")).body("{}"),
            400,
            "E1004",
        ),
        (
            server
                .post(&format!("{path}?response_mode=sync&response_mode=sync"))
                .body("{}"),
            400,
            "E1001",
        ),
        (
            execute()
                .header("x-cognitive-recovery-session", "x")
                .header("x-cognitive-recovery-seq", "many"),
            400,
            "E1001",
        ),
        (server.get("/v1/modules/%ff"), 404, "E4009"),
        (server.get("/v1/ws"), 400, "E1001"),
        (server.post("/healthz"), 405, "E4008"),
        (server.get("/run"), 405, "E4008"),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{code}");
        if status == 405 {
            assert!(response.headers().contains_key("allow"));
        }
        let envelope = body_of(response).await;
        assert_eq!(envelope["error"]["code"], code, "{envelope}");
        assert_eq!(check_structure(&envelope, Profile::Cognitive), [], "{envelope}");
    }
}

#[tokio::test]
async fn foreign_origins_are_refused_unless_listed() {
    let stage = Stage::new();
    stage.configure("[server]\ncors_origins = [\"https://app.example\"]\n");
    let server = stage.serve(&[&stage.talker(0)]);
    let run = |origin: &'static str| server.execute("counter", &input()).header("origin", origin);
    let refused = run("https://evil.example").send().await.unwrap();
    assert_eq!(refused.status(), 403);
    assert_eq!(body_of(refused).await["error"]["code"], "E4007");
    let allowed = run("https://app.example").send().await.unwrap();
    assert_eq!(allowed.status(), 200);
    assert_eq!(
        allowed.headers()["access-control-allow-origin"],
        "https://app.example"
    );
    let asking = reqwest::Client::new()
        .request(
            reqwest::Method::OPTIONS,
            format!("{}/v1/modules/counter/execute", server.url),
        )
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "x-cognitive-recovery-session");
    let answer = asking.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let headers = answer.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(headers.contains("x-cognitive-recovery-session"), "{headers}");
    // DNS rebinding: a foreign host name that resolves to this server.
    let rebound = server.get("/v1/modules").header("host", "evil.example");
    assert_eq!(rebound.send().await.unwrap().status(), 403);
}

/// Without allowed origins no CORS header is sent, also not for a preflight request.
#[tokio::test]
async fn server_without_allowed_origins_sends_no_cors_headers() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let is_silent = |response: &reqwest::Response| {
        let mut names = response.headers().keys().map(|name| name.as_str());
        !names.any(|name| name == "vary" || name.starts_with("access-control-"))
    };
    let answered = server.execute("counter", &input()).send().await.unwrap();
    assert_eq!(answered.status(), 200);
    assert!(is_silent(&answered), "{answered:?}");
    let from_elsewhere = server
        .execute("counter", &input())
        .header("origin", "https://app.example");
    let refused = from_elsewhere.send().await.unwrap();
    assert_eq!(refused.status(), 403);
    assert!(is_silent(&refused), "{refused:?}");
    let asking = reqwest::Client::new()
        .request(
            reqwest::Method::OPTIONS,
            format!("{}/v1/modules/counter/execute", server.url),
        )
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST");
    let answer = asking.send().await.unwrap();
    let yes = answer.headers().get("access-control-allow-origin");
    assert_eq!(yes, None, "{answer:?}");
}

#[tokio::test]
async fn streams_per_client_are_limited() {
    let stage = Stage::new();
    stage.configure("[server]\nstreams_per_client_max = 2\n");
    let server = stage.serve(&[&stage.talker(200)]);
    let stream = || {
        server
            .execute("counter", &input())
            .header("accept", "text/event-stream")
    };
    let first = stream().send().await.unwrap();
    let second = stream().send().await.unwrap();
    let third = stream().send().await.unwrap();
    assert_eq!(third.status(), 429);
    assert!(third.headers().contains_key("retry-after"));
    assert_eq!(body_of(third).await["error"]["code"], "E4002");
    drop(first);
    // The server detects the disconnect at its next write or read.
    let freed = async {
        while stream().send().await.unwrap().status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), freed)
        .await
        .unwrap();
    drop(second);
}

#[tokio::test]
async fn stream_over_time_limit_ends_with_its_code() {
    let stage = Stage::new();
    stage.module("hasty", "deny", "both, max_duration_ms: 300");
    let server = stage.serve(&[&stage.talker(5_000)]);
    let request = server
        .execute("hasty", &input())
        .header("accept", "application/x-ndjson");
    let text = request.send().await.unwrap().text().await.unwrap();
    assert_eq!(assemble(&text).envelope["error"]["code"], "E2011", "{text}");
    let percents: Vec<u64> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["progress"]["percent"].as_u64())
        .collect();
    assert!(percents.is_sorted(), "{percents:?}");
}

/// Two back-ends, each with one model; a request may select a model that its key allows.
#[tokio::test]
async fn request_may_select_a_model() {
    let stage = Stage::new();
    let mut config = String::from("[auth]\nrequired = true\n");
    for model in ["small", "large"] {
        let reply = crate::harness::REPLY.replace("two words", model);
        let script = stage.script(model, &json!([{"reply": reply}]));
        let script = script.strip_prefix("scripted:").unwrap();
        config += &format!(
            "[[backends]]\nname = \"{model}\"\nkind = \"scripted\"\nmodel = \"{model}\"\nscript = {script:?}\n"
        );
    }
    let config = stage.config(&config);
    let (free, bound) = (key(&stage, &[]), key(&stage, &["--model", "small"]));
    let server = stage.serve_with(&["--config", &config], &[]);
    let ask = async |key: &str, model: &str| {
        let body = json!({"input": input(), "_options": {"model": model}});
        let response = server
            .execute("counter", &body)
            .bearer_auth(key)
            .send()
            .await
            .unwrap();
        (response.status().as_u16(), body_of(response).await)
    };
    for model in ["small", "large"] {
        let (status, envelope) = ask(&free, model).await;
        assert_eq!(
            (status, &envelope["meta"]["explain"]),
            (200, &json!(model)),
            "{envelope}"
        );
        assert_eq!(envelope["meta"]["model"], format!("scripted/{model}"));
    }
    assert_eq!(ask(&bound, "small").await.0, 200);
    for (key, model) in [(&bound, "large"), (&free, "huge")] {
        let (status, envelope) = ask(key, model).await;
        assert!(status >= 500, "{envelope}");
        assert_eq!(envelope["ok"], false, "{envelope}");
    }
}

#[tokio::test]
async fn capabilities_list_media_supported_by_backends() {
    let stage = Stage::new();
    let declared = async |keys: &str| {
        let config = stage.config(&format!(
            "[[backends]]\nname = \"b\"\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n{keys}\n"
        ));
        let server = stage.serve_with(&["--config", &config], &[]);
        let envelope = body_of(server.get("/v1/capabilities").send().await.unwrap()).await;
        envelope["data"]["capabilities"].clone()
    };
    let said = declared("features = [\"supports_stream\"]").await;
    assert_eq!(said["multimodal"], json!({"input": [], "output": []}));
    assert_eq!(said["max_media_size_mb"], 0.0);
    let features = "features = [\"supports_stream\", \"supports_image_input\", \"supports_audio_input\"]";
    let said = declared(features).await;
    assert_eq!(said["multimodal"]["input"], json!(["audio", "image"]));
    assert_eq!(said["media_size_mb"], json!({"image": 20.0, "audio": 25.0}));
    assert_eq!(said["max_media_size_mb"], 25.0);
    assert_eq!(said["multimodal"]["output"], json!([]));
    let said = declared("operations = [\"chat_completions\", \"image_generation\"]").await;
    assert_eq!(said["multimodal"]["output"], json!(["image"]));
    let said = declared("operations = [\"image_generation\", \"text_to_speech\"]").await;
    assert_eq!(said["multimodal"]["output"], json!(["audio", "image"]));
}
