//! A client that comes and goes, and remembers what it has received as whole events.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::MODULE;
use crate::harness::{Server, chunks, input};

#[derive(Clone, Copy, Debug)]
pub(super) enum Transport {
    Sse,
    Ndjson,
    Socket,
}

#[derive(Default)]
pub(super) struct Client {
    pub(super) session: Option<String>,
    pub(super) received: Vec<String>,
    checkpoint: Option<Value>,
    pub(super) ended: bool,
    /// The server said that its journal is full, and that one may come back.
    pub(super) was_full: bool,
}

impl Client {
    fn last_seq(&self) -> usize {
        chunks(&self.received.join("\n")).len()
    }

    /// Everything a request needs to go on, or to begin.
    fn place(&self) -> Option<Value> {
        let session = self.session.as_ref()?;
        let mut place = json!({"session_id": session, "last_seq": self.last_seq()});
        if let Some(checkpoint) = &self.checkpoint {
            place["last_checkpoint"] = checkpoint.clone();
        }
        Some(place)
    }

    fn take(&mut self, body: &str) {
        let event: Value = serde_json::from_str(body).unwrap();
        if event["streaming"] == true && event["ok"] == true {
            let session = event["session_id"].as_str().map(String::from);
            assert!(
                self.session.is_none() || self.session == session,
                "a resumed stream stays in its session"
            );
            self.session = session;
        }
        if let Some(seq) = event["chunk"]["seq"].as_u64() {
            let expected = self.last_seq() as u64 + 1;
            assert_eq!(seq, expected, "lost or doubled in {:#?}\n{body}", self.received);
            self.checkpoint = event["chunk"].get("checkpoint").cloned();
        }
        let broke_off = event["error"]["recoverable"] == true;
        if broke_off {
            self.hit(&event);
        }
        self.ended |= event["final"] == true || (event.get("error").is_some() && !broke_off);
        self.received.push(String::from(body));
    }

    /// The one thing that may keep a run from going on.
    fn hit(&mut self, event: &Value) {
        let reason = &event["error"]["details"]["reason"];
        assert_eq!(reason, "journal_full", "{event}");
        self.was_full = true;
    }

    /// One connection, left after `patience`: bytes of a body, or messages of a socket.
    pub(super) async fn visit(&mut self, server: &Server, transport: Transport, patience: usize) {
        match transport {
            Transport::Sse => self.read(server, "text/event-stream", patience).await,
            Transport::Ndjson => self.read(server, "application/x-ndjson", patience).await,
            Transport::Socket => self.talk(server, patience / 100).await,
        }
    }

    async fn read(&mut self, server: &Server, accept: &str, patience: usize) {
        let mut body = json!({"input": input()});
        if let Some(place) = self.place() {
            body["_recovery"] = place;
        }
        let request = server.execute(MODULE, &body).header("accept", accept);
        let response = request.send().await.unwrap();
        if response.status() != 200 {
            let refusal: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            return self.hit(&refusal);
        }
        let mut pieces = response.bytes_stream();
        let mut bytes = Vec::new();
        while bytes.len() < patience {
            match pieces.next().await {
                Some(piece) => bytes.extend_from_slice(&piece.unwrap()),
                None => break,
            }
        }
        bytes.truncate(patience);
        let text = String::from_utf8_lossy(&bytes);
        // What was not read to the end of its line was not received.
        let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
        let bodies = whole
            .lines()
            .map(|line| line.strip_prefix("data: ").unwrap_or(line));
        for body in bodies.filter(|line| line.starts_with('{')) {
            self.take(body);
        }
    }

    async fn talk(&mut self, server: &Server, patience: usize) {
        let url = format!("{}/v1/ws", server.url.replacen("http", "ws", 1));
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        let ask = match self.place() {
            Some(mut place) => {
                place["type"] = json!("resume");
                place["id"] = json!("one");
                place
            }
            None => json!({"type": "execute", "id": "one", "module": MODULE, "input": input()}),
        };
        socket.send(Message::text(ask.to_string())).await.unwrap();
        for _ in 0..patience {
            let Some(Ok(message)) = socket.next().await else {
                return;
            };
            let Message::Text(text) = message else { continue };
            let told: Value = serde_json::from_str(&text).unwrap();
            if told["type"] == "error" {
                return self.hit(&told["event"]);
            }
            assert_eq!(told["type"], "event", "{told}");
            self.take(&told["event"].to_string());
            if self.ended || self.was_full {
                return;
            }
        }
    }
}
