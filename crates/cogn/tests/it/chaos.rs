//! Chaos, from a seed: clients that drop at any byte and come back over any transport, back-ends that die in
//! the middle of a word, servers that are killed. In the end what the client holds, what the journal holds and
//! what a call without streaming gives are the same; nothing is lost, doubled or left without an end.

use std::env;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::stage::{REPLY, Server, Stage, assemble, chunks, data, input};

/// Rounds in the test command; `CHAOS_ROUNDS` raises it.
const ROUNDS: u64 = 8;
/// Comings and goings of one client, after which it stays to the end.
const DROPS_MAX: usize = 6;
const MODULE: &str = "counter";

#[derive(Clone, Copy, Debug)]
enum Transport {
    Sse,
    Ndjson,
    Socket,
}

/// The same throws for the same seed.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn transport(&mut self) -> Transport {
        match self.throw(3) {
            0 => Transport::Sse,
            1 => Transport::Ndjson,
            _ => Transport::Socket,
        }
    }
}

/// What a client has received, as bodies of whole events.
#[derive(Default)]
struct Client {
    session: Option<String>,
    received: Vec<String>,
    checkpoint: Option<Value>,
    ended: bool,
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
        self.ended |= event["final"] == true || event.get("error").is_some();
        self.received.push(String::from(body));
    }

    /// One connection, left after `patience`: bytes of a body, or messages of a socket.
    async fn visit(&mut self, server: &Server, transport: Transport, patience: usize) {
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
        assert_eq!(response.status(), 200);
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
            assert_eq!(told["type"], "event", "{told}");
            self.take(&told["event"].to_string());
            if self.ended {
                return;
            }
        }
    }
}

async fn round(seed: u64) {
    let mut dice = Dice(seed);
    let stage = Stage::new();
    let dies_at = dice.throw(REPLY.len() as u64);
    let mortal = json!([{"reply": REPLY, "chunk_bytes": 5, "delay_ms": 1, "cut_after_bytes": dies_at}]);
    let mortal = stage.script("mortal", &mortal);
    let backends = [mortal, stage.talker(2)];
    let backends: Vec<&str> = backends.iter().map(String::as_str).collect();
    let mut server = stage.serve(&backends);
    let mut client = Client::default();
    let mut drops = 0;
    while !client.ended {
        let patience = match drops < DROPS_MAX {
            true => usize::try_from(dice.throw(1500)).unwrap(),
            false => usize::MAX,
        };
        let transport = dice.transport();
        let visit = client.visit(&server, transport, patience);
        tokio::time::timeout(Duration::from_secs(60), visit)
            .await
            .unwrap_or_else(|_| panic!("seed {seed}: silence over {transport:?}"));
        drops += 1;
        if !client.ended && dice.throw(4) == 0 {
            server.kill();
            server = stage.serve(&backends);
        }
    }
    let held = client.received.join("\n");
    let session = client.session.unwrap();
    let events = server.get(&format!("/v1/runs/{session}/events"));
    let events = events.header("accept", "text/event-stream").send().await.unwrap();
    let journal = events.text().await.unwrap();
    let whole = server.execute(MODULE, &input()).send().await.unwrap();
    let whole: Value = serde_json::from_slice(&whole.bytes().await.unwrap()).unwrap();
    assert_eq!(chunks(&held), chunks(&journal), "seed {seed}");
    let envelope = assemble(&held).envelope;
    assert_eq!(envelope, assemble(&journal).envelope, "seed {seed}");
    assert_eq!(envelope["data"], data(), "seed {seed}");
    assert_eq!(whole["data"], data(), "seed {seed}");
}

#[tokio::test]
async fn nothing_is_lost_doubled_or_left_open_whatever_dies() {
    let asked = env::var_os("CHAOS_ROUNDS");
    let rounds = asked
        .and_then(|rounds| rounds.to_str()?.parse().ok())
        .unwrap_or(ROUNDS);
    for seed in 0..rounds {
        round(seed).await;
    }
}
