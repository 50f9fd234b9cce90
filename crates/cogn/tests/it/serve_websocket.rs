//! Runs over the WebSocket: the same events as over HTTP, many runs on one connection.

use std::collections::BTreeMap;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::harness::{Server, Stage, assemble, data, input};
use crate::keys::{answer, closed, cogn, key};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn connect(server: &Server) -> Self {
        let url = format!("ws://{}/v1/ws", server.address());
        Self(connect_async(url).await.unwrap().0)
    }

    async fn send(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        loop {
            match self.0.next().await.expect("more").unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.receive().await
    }

    /// The events of `id` until its terminal event, as lines; events of other runs are stored in `others`.
    async fn stream(&mut self, id: &str, others: &mut BTreeMap<String, String>) -> String {
        loop {
            if let Some(text) = others.get(id).filter(|text| has_ended(text)) {
                return text.clone();
            }
            let message = self.receive().await;
            assert_eq!(message["type"], "event", "{message}");
            let text = others
                .entry(String::from(message["id"].as_str().unwrap()))
                .or_default();
            text.push_str(&format!("{}\n", message["event"]));
        }
    }
}

fn has_ended(text: &str) -> bool {
    let last = text.lines().last().unwrap_or_default();
    let last: Value = serde_json::from_str(last).unwrap_or_default();
    last["final"] == true || last["ok"] == false
}

fn execute(id: &str, module: &str) -> Value {
    json!({"type": "execute", "id": id, "module": module, "input": input()})
}

#[tokio::test]
async fn runs_share_a_socket_without_mixing_events() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(1)]);
    let mut client = Client::connect(&server).await;
    let ids: Vec<String> = (0..20).map(|number| format!("run \"{number}\"")).collect();
    for id in &ids {
        client.send(&execute(id, "counter")).await;
    }
    let mut texts = BTreeMap::new();
    for id in &ids {
        let text = client.stream(id, &mut texts).await;
        assert_eq!(assemble(&text).envelope["data"], data(), "{id}");
    }
    let pong = client.ask(&json!({"type": "ping", "id": "p"})).await;
    assert_eq!(pong, json!({"type": "pong", "id": "p"}));
}

#[tokio::test]
async fn run_resumes_on_another_socket() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(10)]);
    let mut first = Client::connect(&server).await;
    first.send(&execute("a", "counter")).await;
    let mut text = String::new();
    let mut last_seq = 0;
    while last_seq < 3 {
        let event = first.receive().await["event"].take();
        last_seq = event["chunk"]["seq"].as_u64().unwrap_or(last_seq);
        text.push_str(&format!("{event}\n"));
    }
    drop(first);
    let meta: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let mut second = Client::connect(&server).await;
    let resume = json!({"type": "resume", "id": "b", "session_id": meta["session_id"], "last_seq": last_seq});
    second.send(&resume).await;
    let rest = second.stream("b", &mut BTreeMap::new()).await;
    assert_eq!(assemble(&format!("{text}{rest}")).envelope["data"], data());
}

#[tokio::test]
async fn run_is_cancelled_by_its_id() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(500)]);
    let mut client = Client::connect(&server).await;
    client.send(&execute("slow", "counter")).await;
    client.receive().await;
    client.send(&json!({"type": "cancel", "id": "slow"})).await;
    loop {
        let event = client.receive().await["event"].take();
        if event["ok"] == false {
            assert_eq!(event["error"]["code"], "E2010");
            break;
        }
    }
}

#[tokio::test]
async fn non_streaming_module_sends_one_event() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let mut client = Client::connect(&server).await;
    let answer = client.ask(&execute("w", "waiter")).await;
    assert_eq!(answer["event"]["data"], data());
    assert_eq!(answer["event"]["_warnings"][0]["code"], "W4010");
}

#[tokio::test]
async fn invalid_messages_are_refused_and_the_socket_stays_open() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(300)]);
    let mut client = Client::connect(&server).await;
    for (message, code) in [
        (json!([]), "E1000"),
        (json!({"type": "dance", "id": "x"}), "E1004"),
        (json!({"type": "execute"}), "E1002"),
        (json!({"type": "execute", "id": "x"}), "E1002"),
        (
            json!({"type": "execute", "id": "x", "module": "no-such-module"}),
            "E4006",
        ),
        (
            json!({"type": "execute", "id": "x", "module": "counter"}),
            "E1002",
        ),
        (
            json!({"type": "execute", "id": "x", "module": "counter", "model": "m"}),
            "E1001",
        ),
        (
            json!({"type": "resume", "id": "x", "session_id": "sess_0"}),
            "E4013",
        ),
        (json!({"type": "cancel", "id": "x"}), "E4009"),
    ] {
        let answer = client.ask(&message).await;
        assert_eq!(answer["type"], "error", "{message} {answer}");
        assert_eq!(answer["event"]["error"]["code"], code, "{message} {answer}");
    }
    // Nested deeper than the depth limit.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    client.0.send(Message::text(deep)).await.unwrap();
    assert_eq!(client.receive().await["event"]["error"]["code"], "E1000");
    // A duplicate id, and more runs than the limit per socket.
    let mut codes = Vec::new();
    for number in 0..=64 {
        client.send(&execute(&format!("r{number}"), "counter")).await;
    }
    client.send(&execute("r0", "counter")).await;
    while codes.len() < 2 {
        let answer = client.receive().await;
        if answer["type"] == "error" {
            codes.push(answer["event"]["error"]["code"].clone());
        }
    }
    assert_eq!(codes, ["E4002", "E1001"]);
}

#[tokio::test]
async fn foreign_origin_cannot_open_a_socket() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let request = server
        .get("/v1/ws")
        .header("origin", "https://evil.example")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
    assert_eq!(request.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn shutdown_closes_sockets_cleanly() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(10)]);
    let mut client = Client::connect(&server).await;
    client.send(&execute("a", "counter")).await;
    client.receive().await;
    let stopping = tokio::task::spawn_blocking(move || server.terminate());
    let mut ended = false;
    while let Some(Ok(message)) = client.0.next().await {
        match message {
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                ended |= message["event"]["final"] == true;
            }
            Message::Close(frame) => {
                assert_eq!(u16::from(frame.unwrap().code), 1012);
                break;
            }
            _ => {}
        }
    }
    assert!(ended, "the run was not sent to its end");
    assert_eq!(stopping.await.unwrap(), Some(0));
}

#[tokio::test]
async fn http_headers_are_fields_of_a_message() {
    const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let mut client = Client::connect(&server).await;
    let mut message = execute("a", "counter");
    message["_idempotency_key"] = json!("order-1");
    message["_traceparent"] = json!(format!("00-{TRACE_ID}-b7ad6b7169203331-01"));
    client.send(&message).await;
    let first = client.stream("a", &mut BTreeMap::new()).await;
    assert_eq!(assemble(&first).envelope["meta"]["trace_id"], TRACE_ID, "{first}");
    // A repeated request finds the same run on any connection; a different request with the same idempotency
    // key is refused.
    message["id"] = json!("b");
    let mut other = Client::connect(&server).await;
    other.send(&message).await;
    let again = other.stream("b", &mut BTreeMap::new()).await;
    assert_eq!(again, first);
    message["id"] = json!("c");
    message["input"] = json!({"text": "something else"});
    let refused = other.ask(&message).await;
    assert_eq!((&refused["type"], &refused["id"]), (&json!("error"), &json!("c")));
    assert_eq!(refused["event"]["error"]["code"], "E1001", "{refused}");
    message["_idempotency_key"] = json!("");
    assert_eq!(other.ask(&message).await["event"]["error"]["code"], "E1001");
    // The trace context of the connection is passed on to its runs.
    let request = format!("ws://{}/v1/ws", server.address());
    let mut request = request.into_client_request().unwrap();
    let parent = "00-11111111111111111111111111111111-2222222222222222-01";
    request
        .headers_mut()
        .insert("traceparent", parent.parse().unwrap());
    let mut traced = Client(connect_async(request).await.unwrap().0);
    traced.send(&execute("d", "counter")).await;
    let text = traced.stream("d", &mut BTreeMap::new()).await;
    assert_eq!(assemble(&text).envelope["meta"]["trace_id"], "1".repeat(32));
}

#[tokio::test]
async fn ticket_opens_one_socket_with_rights_of_its_owner() {
    let stage = Stage::new();
    let (runner, reader) = (key(&stage, &[]), key(&stage, &["--scope", "read"]));
    let server = closed(&stage, &[&stage.talker(0)]);
    assert!(
        connect_async(format!("ws://{}/v1/ws", server.address()))
            .await
            .is_err()
    );
    let ticket = async |key: &str| {
        let (status, body) = answer(server.post("/v1/ws/token").bearer_auth(key)).await;
        assert_eq!(status, 200, "{body}");
        format!(
            "ws://{}{}",
            server.address(),
            body["data"]["url"].as_str().unwrap()
        )
    };
    let url = ticket(&runner).await;
    let mut client = Client(connect_async(&url).await.unwrap().0);
    client.send(&execute("a", "counter")).await;
    let text = client.stream("a", &mut BTreeMap::new()).await;
    assert_eq!(assemble(&text).envelope["data"], data());
    assert!(connect_async(&url).await.is_err(), "it was used");
    let mut poor = Client(connect_async(ticket(&reader).await).await.unwrap().0);
    let refused = poor.ask(&execute("b", "counter")).await;
    assert_eq!(refused["event"]["error"]["code"], "E4007", "{refused}");
}

#[tokio::test]
async fn socket_ends_with_its_credentials() {
    let stage = Stage::new();
    let runner = key(&stage, &[]);
    let server = closed(&stage, &[&stage.talker(0)]);
    let mut request = format!("ws://{}/v1/ws", server.address())
        .into_client_request()
        .unwrap();
    let header = format!("Bearer {runner}").parse().unwrap();
    request.headers_mut().insert("authorization", header);
    let mut client = Client(connect_async(request).await.unwrap().0);
    client.send(&execute("a", "counter")).await;
    client.stream("a", &mut BTreeMap::new()).await;
    let (_, ticket) = answer(server.post("/v1/ws/token").bearer_auth(&runner)).await;
    let (_, listed, _) = cogn(&stage, &["keys", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        cogn(&stage, &["keys", "revoke", listed[0]["id"].as_str().unwrap()]).0,
        0
    );
    // Keys are cached for at most a second.
    let closed = loop {
        client.send(&json!({"type": "ping", "id": "p"})).await;
        match client.0.next().await.expect("more").unwrap() {
            Message::Close(frame) => break frame.unwrap(),
            _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    };
    assert_eq!(u16::from(closed.code), 1008, "{closed}");
    let ticket = ticket["data"]["url"].as_str().unwrap();
    let late = connect_async(format!("ws://{}{ticket}", server.address())).await;
    assert!(late.is_err(), "a ticket of a key that is revoked");
}

#[tokio::test]
async fn close_frame_is_answered_and_oversized_message_closes_with_1002() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let mut closing = Client::connect(&server).await;
    closing.0.send(Message::Close(None)).await.unwrap();
    // The close frame ends the stream without an error.
    while let Some(heard) = closing.0.next().await {
        heard.unwrap();
    }
    let mut large = Client::connect(&server).await;
    let message = Message::text("x".repeat(17 * 1024 * 1024));
    // The connection may be closed before the message is completely sent.
    large.0.send(message).await.ok();
    let received = large.0.next().await;
    if let Some(Ok(Message::Close(Some(frame)))) = &received {
        assert_eq!(u16::from(frame.code), 1002, "{frame}");
        assert!(!frame.reason.is_empty());
    } else {
        panic!("{received:?}");
    }
}

#[tokio::test]
async fn every_socket_request_counts_against_the_rate_limit() {
    let stage = Stage::new();
    let few = key(&stage, &["--rate", "3/h"]);
    let server = closed(&stage, &[&stage.talker(0)]);
    let (_, ticket) = answer(server.post("/v1/ws/token").bearer_auth(&few)).await;
    let ticket = ticket["data"]["url"].as_str().unwrap();
    let url = format!("ws://{}{ticket}", server.address());
    // Ticket, socket and run count as three requests.
    let mut client = Client(connect_async(url).await.unwrap().0);
    client.send(&execute("a", "counter")).await;
    let text = client.stream("a", &mut BTreeMap::new()).await;
    let meta: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let resume = json!({"type": "resume", "id": "b", "session_id": meta["session_id"], "last_seq": 1});
    let refused = client.ask(&resume).await;
    assert_eq!(refused["event"]["error"]["code"], "E4002", "{refused}");
}
