//! Relayed calls over real connections: a caller of one dialect, servers that fail in mid-stream, and what
//! the caller receives, byte for byte. The gateway's part is written as the gateway would write it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::thread;

use bytes::Bytes;
use engine::fleet::{Member, Settings as FleetSettings};
use engine::port::{Archive, RawRequest, Upstream, UsageFilter};
use engine::route::{Candidate, HostPolicy, Policy};
use engine::{
    Admission, Engine, Fleet, Modules, Ports, RelayPart, RelayRequest, RelayResponse, Settings, Tenant,
};
use ir::adaptation::Component;
use ir::fold::Fold;
use ir::operation::{Feature, Operation};
use ir::{Dialect, Event, Ledger, Request};
use providers::{Client, ClientOptions, HttpOptions, openai};
use serde_json::{Value, json};
use store::memory::MemoryJournal;
use testkit::clock::ManualClock;
use testkit::http::{MockServer, ReceivedRequest, ScriptedResponse};
use tokio::time::timeout;
use wire::{Decoder, Encoder};

use crate::runs::SOON;

const WORDS: [&str; 7] = ["Grüße", ",", " 世界", "  and", "\n\n", "so on", ". "];
const BODY: &str =
    "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}";

/// The end of the frame with the finish reason.
const STOP: &str = "\"finish_reason\":\"stop\"}]}";

/// A stream of these words as OpenAI's servers encode it.
fn stream(id: &str, words: &[&str]) -> String {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": id, "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let mut text = chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    for word in words {
        text.push_str(&chunk(json!({"content": word}), Value::Null));
    }
    text.push_str(&chunk(json!({}), json!("stop")));
    let usage =
        json!({"prompt_tokens": 5, "completion_tokens": words.len(), "total_tokens": 5 + words.len()});
    let last =
        json!({"id": id, "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage});
    text.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
    text
}

/// Continues the assistant message of the request.
fn continuing(asked: &ReceivedRequest) -> ScriptedResponse {
    let body = asked.json();
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let prefix = match last["role"] == "assistant" {
        true => {
            assert_eq!(body["continue_final_message"], true);
            last["content"].as_str().unwrap()
        }
        false => "",
    };
    let whole = WORDS.concat();
    let rest = whole.strip_prefix(prefix).unwrap();
    ScriptedResponse::good("text/event-stream", stream("second", &[rest]))
}

struct World {
    engine: Engine,
    journal: Arc<MemoryJournal>,
}

impl World {
    /// In this order, without retries on the same instance; those after the first continue a prefix.
    fn new(urls: &[String]) -> Self {
        let members = (0..).zip(urls).map(|(place, url)| {
            let mut features = BTreeSet::from([Feature::Stream, Feature::SystemRole]);
            if place > 0 {
                features.insert(Feature::Prefill);
            }
            let mut candidate = Candidate::new(format!("b{place}"), "openai", Operation::ChatCompletions);
            candidate.features.clone_from(&features);
            candidate.priority = -place;
            let options = HttpOptions {
                name: candidate.name.clone(),
                base_url: url.clone(),
                features,
                ..HttpOptions::default()
            };
            let client = Client::new(&ClientOptions::default()).unwrap();
            let upstream: Arc<dyn Upstream> = Arc::new(openai(client, options));
            Member::new(candidate, upstream)
        });
        let host = HostPolicy {
            policy: Some(Policy::Priority),
            ..HostPolicy::default()
        };
        let mut settings = FleetSettings::default();
        settings.retry.same_max = 0;
        let journal = Arc::new(MemoryJournal::default());
        let ports = Ports {
            fleet: Arc::new(Fleet::new(members.collect(), host, settings)),
            journal: journal.clone(),
            clock: Arc::new(ManualClock::default()),
        };
        Self {
            engine: Engine::new(ports, Settings::default(), Modules::default()),
            journal,
        }
    }

    async fn relay(&self) -> Result<RelayResponse, Box<engine::RelayFailure>> {
        let dialect = Dialect::OpenaiChat;
        let chat = wire::chat::decode_request(dialect, serde_json::from_str(BODY).unwrap()).unwrap();
        let verbatim = RawRequest::new(dialect, Bytes::from_static(BODY.as_bytes()), Vec::new());
        let call = RelayRequest {
            verbatim: verbatim.map(Arc::new),
            ..RelayRequest::new(Request::chat("req", chat))
        };
        let tenant = Tenant::local();
        let relayed = self.engine.relay(&tenant, call, Admission::default());
        timeout(SOON, relayed).await.unwrap()
    }
}

/// The bytes sent to a caller of OpenAI's dialect.
async fn written(mut relayed: RelayResponse) -> String {
    let mut ledger = Ledger::new(Component::Adapter);
    let (mut out, mut parts) = (Vec::new(), Vec::new());
    let mut encoder: Option<Encoder> = None;
    while timeout(SOON, relayed.next_parts(&mut parts)).await.unwrap() {
        for part in parts.drain(..) {
            match part {
                RelayPart::Raw(piece) => out.extend_from_slice(&piece.bytes),
                RelayPart::Event(event) => encoder
                    .get_or_insert_with(|| Encoder::new(Dialect::OpenaiChat).unwrap())
                    .push(&event, &mut out, &mut ledger),
                RelayPart::Replay(events) => {
                    let mut fresh = Encoder::new(Dialect::OpenaiChat).unwrap();
                    let mut thrown_away = Vec::new();
                    for event in &events {
                        fresh.push(event, &mut thrown_away, &mut ledger);
                    }
                    encoder = Some(fresh);
                }
            }
        }
    }
    if let Some(mut encoder) = encoder {
        encoder.finish(&mut out);
    }
    String::from_utf8(out).unwrap()
}

/// What a client decodes: the text and the events.
fn read(written: &str) -> (String, Vec<Event>) {
    let mut decoder = Decoder::new(Dialect::OpenaiChat).unwrap();
    let mut events = Vec::new();
    decoder.push(written.as_bytes(), &mut events);
    decoder.finish(&mut events);
    let mut fold = Fold::new();
    for event in &events {
        if !matches!(event, Event::Error { .. }) {
            fold.push(event.clone());
        }
    }
    (fold.finish().unwrap().text(), events)
}

fn ids(written: &str) -> BTreeSet<String> {
    let data = written.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    chunks
        .filter_map(|chunk| chunk["id"].as_str().map(String::from))
        .collect()
}

/// Offsets in a stream: every frame boundary, and some inside frames.
fn places(stream: &str) -> Vec<usize> {
    let borders = stream.match_indices("\n\n").map(|(at, mark)| at + mark.len());
    let places = borders.flat_map(|at| [at - 1, at, at + 40]);
    places.filter(|at| stream.is_char_boundary(*at)).collect()
}

#[tokio::test]
async fn failover_at_any_byte_yields_one_complete_stream() {
    let whole = stream("first", &WORDS);
    let second = MockServer::with_responder(|_, asked| continuing(asked));
    for place in places(&whole) {
        let cut = whole.get(..place).unwrap().as_bytes().to_vec();
        let first = MockServer::with_responses(ScriptedResponse::good("text/event-stream", cut));
        let world = World::new(&[first.url(""), second.url("")]);
        let written = written(world.relay().await.unwrap()).await;
        let (text, events) = read(&written);
        assert_eq!(text, WORDS.concat(), "{place}");
        assert_eq!(written.matches("[DONE]").count(), 1, "{place}: {written}");
        assert!(written.ends_with("data: [DONE]\n\n"), "{place}");
        assert!(matches!(events.last(), Some(Event::Finish { .. })), "{place}");
        assert_eq!(ids(&written).len(), 1, "{place}: {written}");
        let usage = world.journal.usage(None, &UsageFilter::default()).await.unwrap();
        assert_eq!(usage[0].runs, 1);
        // Usage is unknown if the server failed after the finish event and before usage; in all other cases
        // it is known.
        let seen = whole.get(..place).unwrap();
        let unknown = seen.contains(STOP) && !seen.contains("\"usage\"");
        assert_eq!(usage[0].output_tokens.is_none(), unknown, "{place}");
    }
}

#[tokio::test]
async fn truncation_at_any_byte_yields_one_error() {
    let whole = stream("first", &WORDS);
    for place in places(&whole) {
        let cut = whole.get(..place).unwrap().as_bytes().to_vec();
        let first = MockServer::with_responses(ScriptedResponse::good("text/event-stream", cut));
        let world = World::new(&[first.url("")]);
        let Ok(relayed) = world.relay().await else {
            assert!(!whole.get(..place).unwrap().contains("Grüße"), "{place}");
            continue;
        };
        let written = written(relayed).await;
        let (text, events) = read(&written);
        assert!(WORDS.concat().starts_with(&text));
        if whole.get(..place).unwrap().contains(STOP) {
            assert!(matches!(events.last(), Some(Event::Finish { .. })), "{place}");
        } else {
            assert!(!written.contains("[DONE]"), "{place}: {written}");
            let errors = events.iter().filter(|event| matches!(event, Event::Error { .. }));
            assert_eq!(errors.count(), 1, "{place}: {written}");
            assert_eq!(written.matches("\"error\"").count(), 1, "{place}: {written}");
        }
    }
}

#[tokio::test]
async fn disconnect_closes_the_upstream_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let (mut caller, _) = listener.accept().unwrap();
        let mut buffer = [0u8; 4096];
        while !String::from_utf8_lossy(&buffer).contains("hello") {
            assert!(caller.read(&mut buffer).unwrap() > 0);
        }
        let whole = stream("first", &WORDS);
        let start = whole.get(..whole.find("世界").unwrap()).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        caller.write_all(format!("{head}{start}").as_bytes()).unwrap();
        // Nothing more arrives while the caller reads.
        let end = caller.read(&mut buffer);
        tell.send(end.unwrap_or(0)).unwrap();
    });
    let world = World::new(&[format!("http://{address}")]);
    let mut relayed = world.relay().await.unwrap();
    assert!(matches!(
        timeout(SOON, relayed.next()).await.unwrap(),
        Some(RelayPart::Raw(_))
    ));
    assert!(told.try_recv().is_err(), "the caller is still connected");
    drop(relayed);
    let ended = tokio::task::spawn_blocking(move || told.recv_timeout(SOON));
    assert_eq!(ended.await.unwrap(), Ok(0));
}
