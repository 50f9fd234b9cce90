//! A client that reconnects and stores the complete events it has received.

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
    /// The server reported a full journal; the run can be resumed.
    pub(super) was_full: bool,
}

impl Client {
    fn last_seq(&self) -> usize {
        chunks(&self.received.join("\n")).len()
    }

    /// The resume point of the next request; none before the first event.
    fn resume_point(&self) -> Option<Value> {
        let session = self.session.as_ref()?;
        let mut resume_point = json!({"session_id": session, "last_seq": self.last_seq()});
        if let Some(checkpoint) = &self.checkpoint {
            resume_point["last_checkpoint"] = checkpoint.clone();
        }
        Some(resume_point)
    }

    fn store(&mut self, body: &str) {
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
            assert_eq!(
                seq, expected,
                "lost or duplicated in {:#?}\n{body}",
                self.received
            );
            self.checkpoint = event["chunk"].get("checkpoint").cloned();
        }
        let broke_off = event["error"]["recoverable"] == true;
        if broke_off {
            self.expect_journal_full(&event);
        }
        self.ended |= event["final"] == true || (event.get("error").is_some() && !broke_off);
        self.received.push(String::from(body));
    }

    /// The only error that may interrupt a run: a full journal.
    fn expect_journal_full(&mut self, event: &Value) {
        let reason = &event["error"]["details"]["reason"];
        assert_eq!(reason, "journal_full", "{event}");
        self.was_full = true;
    }

    /// One connection, dropped after `patience` bytes of a body, or `patience / 100` messages of a WebSocket.
    pub(super) async fn connect(&mut self, server: &Server, transport: Transport, limit: usize) {
        match transport {
            Transport::Sse => self.read(server, "text/event-stream", limit).await,
            Transport::Ndjson => self.read(server, "application/x-ndjson", limit).await,
            Transport::Socket => self.read_socket(server, limit / 100).await,
        }
    }

    async fn read(&mut self, server: &Server, accept: &str, limit: usize) {
        let mut body = json!({"input": input()});
        if let Some(resume_point) = self.resume_point() {
            body["_recovery"] = resume_point;
        }
        let request = server.execute(MODULE, &body).header("accept", accept);
        let response = request.send().await.unwrap();
        if response.status() != 200 {
            let refusal: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            return self.expect_journal_full(&refusal);
        }
        let mut pieces = response.bytes_stream();
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            match pieces.next().await {
                Some(piece) => bytes.extend_from_slice(&piece.unwrap()),
                None => break,
            }
        }
        bytes.truncate(limit);
        let text = String::from_utf8_lossy(&bytes);
        // An incomplete last line does not count as received.
        let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
        let bodies = whole
            .lines()
            .map(|line| line.strip_prefix("data: ").unwrap_or(line));
        for body in bodies.filter(|line| line.starts_with('{')) {
            self.store(body);
        }
    }

    async fn read_socket(&mut self, server: &Server, limit: usize) {
        let url = format!("{}/v1/ws", server.url.replacen("http", "ws", 1));
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        let ask = match self.resume_point() {
            Some(mut resume_point) => {
                resume_point["type"] = json!("resume");
                resume_point["id"] = json!("one");
                resume_point
            }
            None => json!({"type": "execute", "id": "one", "module": MODULE, "input": input()}),
        };
        socket.send(Message::text(ask.to_string())).await.unwrap();
        for _ in 0..limit {
            let Some(Ok(message)) = socket.next().await else {
                return;
            };
            let Message::Text(text) = message else { continue };
            let received_message: Value = serde_json::from_str(&text).unwrap();
            if received_message["type"] == "error" {
                return self.expect_journal_full(&received_message["event"]);
            }
            assert_eq!(received_message["type"], "event", "{received_message}");
            self.store(&received_message["event"].to_string());
            if self.ended || self.was_full {
                return;
            }
        }
    }
}
