//! MCP messages that the official clients cannot be made to send, and responses they do not expose. The tests
//! with the official clients are in `mcp_clients`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::harness::{REPLY, Server, Stage, data};
use crate::keys::key;

/// A host on pipes with full control over its messages.
struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Host {
    fn start(stage: &Stage, backends: &[&str]) -> Self {
        let mut command: Command = stage.cogn();
        command.arg("mcp");
        for backend in backends {
            command.args(["--backend", backend]);
        }
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn initialized(stage: &Stage, backends: &[&str]) -> Self {
        let mut host = Self::start(stage, backends);
        let greeting = host.ask(0, "initialize", &initialize_params("2025-11-25", &json!({})));
        assert_eq!(greeting["result"]["serverInfo"]["name"], "cogn", "{greeting}");
        assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        host
    }

    fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    /// Reads the next message, one per line.
    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&request(id, method, params).to_string());
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask(id, "tools/call", &params);
        answer["result"].clone()
    }

    /// Closes stdin; returns the exit code and the text of stderr.
    fn close(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).unwrap();
        assert_eq!(rest, "", "after the end");
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn initialize_params(version: &str, capabilities: &Value) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"}
    })
}

#[test]
fn standard_output_carries_only_the_protocol() {
    let stage = Stage::new();
    // Causes log lines, at the start and later.
    std::fs::create_dir_all(stage.path("modules/broken")).unwrap();
    std::fs::write(stage.path("modules/broken/module.yaml"), "name: [").unwrap();
    let mut host = Host::initialized(&stage, &[&stage.talker(0)]);
    let unknown = host.ask(1, "tools/rename", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let missing = host.ask(2, "tools/call", &json!({"name": "no-such-tool"}));
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
    let shapeless = host.ask(3, "tools/call", &json!({"name": 7}));
    assert_eq!(shapeless["error"]["code"], -32602, "{shapeless}");
    // Invalid messages are skipped.
    host.send("this is no message");
    host.send("{\"jsonrpc\": \"2.0\", \"id\": 9");
    let good = host.call(4, "counter", &json!({"text": "two words"}));
    assert_eq!(good["structuredContent"]["data"], data());
    let text = good["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap(),
        good["structuredContent"]
    );
    assert!(
        good["_meta"]["cogn/session_id"]
            .as_str()
            .unwrap()
            .starts_with("sess_")
    );
    let (code, log) = host.close();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("broken"), "{log}");
}

#[test]
fn host_may_disconnect_before_initialize() {
    let stage = Stage::new();
    let (code, log) = Host::start(&stage, &[&stage.talker(0)]).close();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn host_selects_among_configured_backends() {
    let stage = Stage::new();
    let one = stage.script("one", &json!([{"reply": REPLY.replace("two words", "one")}]));
    let two = stage.script("two", &json!([{"reply": REPLY.replace("two words", "two")}]));
    let mut host = Host::initialized(&stage, &[&one, &two]);
    for (provider, explain) in [("one", "one"), ("two", "two")] {
        let arguments = json!({"module": "counter", "input": {"text": "x"}, "provider": provider});
        let answer = host.call(1, "cognitive_run", &arguments);
        assert_eq!(
            answer["structuredContent"]["meta"]["explain"], explain,
            "{answer}"
        );
    }
    for arguments in [
        json!({"module": "counter", "input": {}, "args": ""}),
        json!({"module": "counter", "shell": "ls"}),
        json!({}),
    ] {
        let answer = host.call(2, "cognitive_run", &arguments);
        assert_eq!(answer["isError"], true);
        assert_eq!(answer["structuredContent"]["error"]["code"], "E1001", "{answer}");
    }
    host.close();
}

#[test]
fn confirmation_of_another_call_is_refused() {
    let stage = Stage::new();
    let mut host = Host::start(&stage, &[&stage.talker(0)]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}
    });
    let call = |text: &str, more: &Value| {
        let mut params = json!({"name": "actor", "arguments": {"text": text}, "_meta": meta});
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        params
    };
    let asked = host.ask(1, "tools/call", &call("harmless", &json!({})));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let question = &asked["result"]["inputRequests"]["confirm"]["params"];
    assert!(
        question["message"].as_str().unwrap().contains("harmless"),
        "{asked}"
    );
    let yes = json!({
        "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": true}}},
        "requestState": asked["result"]["requestState"]
    });
    let other = host.ask(2, "tools/call", &call("harmful", &yes));
    let error = &other["result"]["structuredContent"]["error"];
    assert_eq!(
        (&error["code"], &error["details"]["confirmation"]),
        (&json!("E4007"), &json!("other_call"))
    );
    let same = host.ask(3, "tools/call", &call("harmless", &yes));
    assert_eq!(same["result"]["structuredContent"]["ok"], true, "{same}");
    host.close();
}

#[test]
fn operator_may_disable_confirmation() {
    let stage = Stage::new();
    let arguments = json!({"text": "x"});
    let mut host = Host::initialized(&stage, &[&stage.talker(0)]);
    let refused = host.call(1, "actor", &arguments);
    assert_eq!(refused["structuredContent"]["error"]["code"], "E4007");
    host.close();
    stage.configure("[mcp]\nconfirm = false\n");
    let mut host = Host::initialized(&stage, &[&stage.talker(0)]);
    let done = host.call(1, "actor", &arguments);
    assert_eq!(done["structuredContent"]["ok"], true, "{done}");
    host.close();
}

/// A message as clients of the newest protocol version send it.
fn current_request(server: &Server, method: &str, params: &Value) -> RequestBuilder {
    let mut message = request(1, method, params);
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({"name": "test", "version": "1"});
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let name = params["name"].as_str().or_else(|| params["uri"].as_str());
    let mut post = posted(server, &message)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = name {
        post = post.header("mcp-name", name);
    }
    post
}

fn posted(server: &Server, message: &Value) -> RequestBuilder {
    server
        .post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(message.to_string())
}

async fn answer(post: RequestBuilder) -> (u16, Value) {
    let response = post.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    // Older clients get a stream of one response.
    let body = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .next_back();
    (
        status,
        serde_json::from_str(body.unwrap_or(&text)).unwrap_or(Value::Null),
    )
}

fn tools(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn keys_grant_the_same_access_over_mcp() {
    let stage = Stage::new();
    let bearer = |key: String| format!("Bearer {key}");
    let all = bearer(key(&stage, &[]));
    let reader = bearer(key(&stage, &["--scope", "read"]));
    let narrow = bearer(key(&stage, &["--module", "counter"]));
    let server = stage.serve_with(&["--require-auth"], &[&stage.talker(0)]);
    let list = || current_request(&server, "tools/list", &json!({}));
    let call = |tool: &str| {
        current_request(
            &server,
            "tools/call",
            &json!({"name": tool, "arguments": {"text": "x"}}),
        )
    };

    for post in [
        list(),
        call("counter"),
        list().header("authorization", "Bearer nonsense"),
    ] {
        let (status, body) = answer(post).await;
        assert_eq!((status, &body["error"]["code"]), (401, &json!("E4007")), "{body}");
    }
    let (_, listed) = answer(list().header("authorization", &all)).await;
    assert!(tools(&listed).contains(&"actor"), "{listed}");
    let (_, listed) = answer(list().header("authorization", &narrow)).await;
    assert!(tools(&listed).contains(&"counter") && !tools(&listed).contains(&"actor"));
    let (_, hidden) = answer(call("waiter").header("authorization", &narrow)).await;
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
    let named = json!({"name": "cognitive_run", "arguments": {"module": "waiter"}});
    let named = current_request(&server, "tools/call", &named).header("authorization", &narrow);
    let (_, hidden) = answer(named).await;
    assert_eq!(
        hidden["result"]["structuredContent"]["error"]["code"], "E4006",
        "{hidden}"
    );
    let (_, read_only) = answer(call("counter").header("authorization", &reader)).await;
    let error = &read_only["result"]["structuredContent"]["error"];
    assert_eq!(
        (&error["code"], &error["details"]["scope"]),
        (&json!("E4007"), &json!("execute"))
    );
    let (_, good) = answer(call("counter").header("authorization", &narrow)).await;
    assert_eq!(good["result"]["structuredContent"]["data"], data(), "{good}");
}

#[tokio::test]
async fn foreign_origins_and_oversized_bodies_are_refused() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let list = || current_request(&server, "tools/list", &json!({}));
    for post in [
        list().header("origin", "https://evil.example"),
        list().header("host", "evil.example"),
    ] {
        let (status, body) = answer(post).await;
        assert_eq!((status, &body["error"]["code"]), (403, &json!("E4007")));
    }
    let (status, body) = answer(list().body(" ".repeat(16 * 1024 * 1024 + 1))).await;
    assert_eq!((status, &body["error"]["code"]), (413, &json!("E1005")));
    let (status, _) = answer(list().body("this is no message")).await;
    assert!((400..500).contains(&status), "{status}");
    let response = server.get("/mcp").send().await.unwrap();
    assert!(response.status().is_client_error(), "{}", response.status());
}

#[tokio::test]
async fn session_belongs_to_its_creator() {
    let stage = Stage::new();
    let bearer = |key: String| format!("Bearer {key}");
    let (mine, yours) = (bearer(key(&stage, &[])), bearer(key(&stage, &[])));
    let server = stage.serve_with(&["--require-auth"], &[&stage.talker(0)]);
    let greeting = request(0, "initialize", &initialize_params("2025-06-18", &json!({})));
    let opened = posted(&server, &greeting).header("authorization", &mine);
    let opened = opened.send().await.unwrap();
    assert_eq!(opened.status(), 200);
    let session = String::from(opened.headers()["mcp-session-id"].to_str().unwrap());
    let list = |who: &str, session: &str| {
        posted(&server, &request(1, "tools/list", &json!({})))
            .header("authorization", who)
            .header("mcp-session-id", session)
            .header("mcp-protocol-version", "2025-06-18")
    };
    let (status, listed) = answer(list(&mine, &session)).await;
    assert_eq!(status, 200);
    assert!(tools(&listed).contains(&"counter"));
    for (who, id) in [(&yours, session.as_str()), (&mine, "made up")] {
        let (status, _) = answer(list(who, id)).await;
        assert_eq!(status, 404, "{id}");
    }
    let close = |who: &str| {
        let delete = reqwest::Client::new().delete(format!("{}/mcp", server.url));
        delete
            .header("authorization", who)
            .header("mcp-session-id", &session)
            .header("mcp-protocol-version", "2025-06-18")
    };
    assert_eq!(close(&yours).send().await.unwrap().status(), 404);
    assert!(close(&mine).send().await.unwrap().status().is_success());
    let (status, _) = answer(list(&mine, &session)).await;
    assert_eq!(status, 404, "it was closed");
}

#[tokio::test]
async fn disconnect_cancels_the_call() {
    let stage = Stage::new();
    let slow = stage.script(
        "slow",
        &json!([{"reply": REPLY, "chunk_bytes": 1, "delay_ms": 1_000}]),
    );
    let server = stage.serve(&[&slow]);
    let params = json!({"name": "counter", "arguments": {"text": "x"}, "_meta": {"progressToken": "p"}});
    let mut response = current_request(&server, "tools/call", &params)
        .send()
        .await
        .unwrap();
    let first = response.chunk().await.unwrap().unwrap();
    assert!(
        String::from_utf8_lossy(&first).contains("notifications/progress"),
        "{first:?}"
    );
    drop(response);
    let ended = async {
        loop {
            let runs = server
                .get("/v1/runs")
                .send()
                .await
                .unwrap()
                .bytes()
                .await
                .unwrap();
            let runs: Value = serde_json::from_slice(&runs).unwrap();
            let run = &runs["data"]["runs"][0];
            if run["state"] != "running" {
                return run["code"].clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let code = tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap();
    assert!(code.as_str().unwrap().starts_with('E'), "{code}");
}

#[tokio::test]
async fn shutdown_does_not_wait_for_listening_hosts() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = current_request(&server, "subscriptions/listen", &listen)
        .send()
        .await
        .unwrap();
    let first = listening.chunk().await.unwrap().unwrap();
    assert!(
        String::from_utf8_lossy(&first).contains("acknowledged"),
        "{first:?}"
    );
    let stopped = tokio::task::spawn_blocking(move || server.terminate());
    let code = tokio::time::timeout(Duration::from_secs(10), stopped)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(code, Some(0));
}
