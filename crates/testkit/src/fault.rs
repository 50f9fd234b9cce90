//! All faults of HTTP back-ends with their expected results: one table for the tests of the providers, the
//! tests of the binary, and the page of the reference.

use std::net::TcpListener;
use std::time::Duration;

use ir::{Dialect, ErrorKind, Ledger, Phase, adaptation::Component};
use ir::{Event, event::Block, event::Delta, event::FinishReason};
use serde_json::json;
use wire::{Encoder, chat};

use crate::http::{MockServer, ScriptedResponse};

/// Longer than every timeout of a test, shorter than the limit for a hanging test.
const LONG: Duration = Duration::from_secs(20);

/// One fault and its expected results.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The name in the reference.
    pub name: &'static str,
    pub kind: ErrorKind,
    pub phase: Phase,
    pub status: Option<u16>,
    /// The code of an unstreamed run without another back-end.
    pub code: &'static str,
    /// Whether the attempt fails over.
    pub elsewhere: bool,
    make: FaultSetup,
}

#[derive(Clone, Copy, Debug)]
enum FaultSetup {
    /// An address at which no server answers.
    Address(fn() -> String),
    /// The complete response, byte for byte.
    Answer(fn(Dialect) -> ScriptedResponse),
}

/// A faulty server in place of a back-end.
#[derive(Debug)]
pub struct FaultyServer {
    /// Without the path of the dialect.
    pub url: String,
    pub server: Option<MockServer>,
}

impl Fault {
    pub fn start(&self, dialect: Dialect) -> FaultyServer {
        match self.make {
            FaultSetup::Address(address) => FaultyServer {
                url: address(),
                server: None,
            },
            FaultSetup::Answer(answer) => {
                let server = MockServer::with_responses(answer(dialect));
                let url = server.url("");
                FaultyServer {
                    url,
                    server: Some(server),
                }
            }
        }
    }
}

use ErrorKind::{
    AnswerTooLarge, Auth, ContextWindow, InvalidResponse, Network, NotEnabled, Quota, RateLimited, Timeout,
    Upstream,
};
use Phase::{BeforeFirstByte, BeforeSend, MidStream};

/// A row whose response has a status.
const fn status(
    name: &'static str,
    (kind, code): (ErrorKind, &'static str),
    status: u16,
    answer: fn(Dialect) -> ScriptedResponse,
) -> Fault {
    Fault {
        name,
        kind,
        phase: BeforeFirstByte,
        status: Some(status),
        code,
        elsewhere: true,
        make: FaultSetup::Answer(answer),
    }
}

/// A row without a response status.
const fn broken(
    name: &'static str,
    (kind, code): (ErrorKind, &'static str),
    phase: Phase,
    make: FaultSetup,
) -> Fault {
    Fault {
        name,
        kind,
        phase,
        status: None,
        code,
        elsewhere: true,
        make,
    }
}

pub const FAULTS: &[Fault] = &[
    broken(
        "connection refused",
        (Network, "E4001"),
        BeforeSend,
        FaultSetup::Address(closed_port),
    ),
    broken(
        "name not found",
        (Network, "E4001"),
        BeforeSend,
        FaultSetup::Address(|| String::from("http://no-such-host.invalid")),
    ),
    broken(
        "no TLS",
        (Network, "E4001"),
        BeforeSend,
        FaultSetup::Address(speaks_no_tls),
    ),
    status("401", (Auth, "E4007"), 401, |d| {
        refused(d, "401 Unauthorized", &[])
    }),
    status("402", (Quota, "E4016"), 402, |d| {
        refused(d, "402 Payment Required", &[])
    }),
    status("403", (Auth, "E4007"), 403, |d| refused(d, "403 Forbidden", &[])),
    status("404, model unknown", (NotEnabled, "E4001"), 404, |d| {
        refused(d, "404 Not Found", &[])
    }),
    status("408", (Timeout, "E2002"), 408, |d| {
        refused(d, "408 Request Timeout", &[])
    }),
    status("413", (ContextWindow, "E4003"), 413, |d| {
        refused(d, "413 Content Too Large", &[])
    }),
    status("429", (RateLimited, "E4002"), 429, |d| {
        refused(d, "429 Too Many Requests", &[])
    }),
    status("429 with Retry-After", (RateLimited, "E4002"), 429, |d| {
        refused(d, "429 Too Many Requests", &[("retry-after", "7")])
    }),
    status("500", (Upstream, "E4001"), 500, |d| {
        refused(d, "500 Internal Server Error", &[])
    }),
    status("502, a page of HTML", (Upstream, "E4001"), 502, |_| {
        let html = "<html><body><h1>502 Bad Gateway</h1></body></html>";
        ScriptedResponse::response("502 Bad Gateway", &[("content-type", "text/html")], html)
    }),
    status("503", (Upstream, "E4001"), 503, |d| {
        refused(d, "503 Service Unavailable", &[])
    }),
    broken(
        "slow first byte",
        (Timeout, "E2002"),
        BeforeFirstByte,
        FaultSetup::Answer(|d| good(d).after(LONG)),
    ),
    broken(
        "stall in the middle of a stream",
        (Timeout, "E2002"),
        MidStream,
        FaultSetup::Answer(|d| half(d).pause(LONG)),
    ),
    broken(
        "stream cut",
        (Network, "E2010"),
        MidStream,
        FaultSetup::Answer(half),
    ),
    broken(
        "malformed stream",
        (InvalidResponse, "E3001"),
        MidStream,
        FaultSetup::Answer(|d| {
            ScriptedResponse::good(content_type(d), "data: {\"choices\": [{\"del\n\ndata: ]\n\n{]\n")
        }),
    ),
    broken(
        "truncated JSON",
        (InvalidResponse, "E3001"),
        MidStream,
        FaultSetup::Answer(|d| {
            let whole = whole(d);
            ScriptedResponse::good(
                "application/json",
                whole.get(..whole.len() / 2).unwrap_or_default(),
            )
        }),
    ),
    broken(
        "wrong content type",
        (InvalidResponse, "E3001"),
        BeforeFirstByte,
        FaultSetup::Answer(|_| ScriptedResponse::good("text/html; charset=utf-8", "<html>sign in</html>")),
    ),
    broken(
        "empty body",
        (InvalidResponse, "E3001"),
        MidStream,
        FaultSetup::Answer(|_| ScriptedResponse::good("application/json", "")),
    ),
    broken(
        "empty stream",
        (Network, "E4001"),
        MidStream,
        FaultSetup::Answer(|d| ScriptedResponse::good(content_type(d), "")),
    ),
    broken(
        "50 MB of JSON",
        (AnswerTooLarge, "E3001"),
        MidStream,
        FaultSetup::Answer(|_| {
            ScriptedResponse::good("application/json", "{\"text\": \"").repeat(vec![b'a'; 1 << 20], 50)
        }),
    ),
    broken(
        "50 MB in one event",
        (AnswerTooLarge, "E3001"),
        MidStream,
        FaultSetup::Answer(|d| {
            ScriptedResponse::good(content_type(d), "data: ").repeat(vec![b'a'; 1 << 20], 50)
        }),
    ),
    broken(
        "error inside a 200",
        (Upstream, "E4001"),
        BeforeFirstByte,
        FaultSetup::Answer(|d| ScriptedResponse::good("application/json", error_body(d, Upstream))),
    ),
    broken(
        "connection closed without an answer",
        (Network, "E4001"),
        BeforeFirstByte,
        FaultSetup::Answer(|_| ScriptedResponse::nothing()),
    ),
];

fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    format!("http://{address}")
}

/// A server that answers a TLS ClientHello in plain text.
fn speaks_no_tls() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for caller in listener.incoming().take(8).flatten() {
            use std::io::{Read, Write};
            let mut caller = caller;
            // The ClientHello is longer than this.
            let mut buffer = [0u8; 64];
            caller.read_exact(&mut buffer).ok();
            caller.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok();
        }
    });
    format!("https://{address}")
}

fn content_type(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Ollama => "application/x-ndjson",
        _ => "text/event-stream",
    }
}

/// An error response with a minimal body.
fn refused(dialect: Dialect, status: &str, headers: &[(&str, &str)]) -> ScriptedResponse {
    let body = match dialect {
        Dialect::Ollama => json!({"error": "no"}),
        _ => json!({"error": {"message": "no"}}),
    };
    let mut headers = headers.to_vec();
    headers.push(("content-type", "application/json"));
    ScriptedResponse::response(status, &headers, body.to_string())
}

fn error_body(dialect: Dialect, kind: ErrorKind) -> String {
    let error = ir::Error::new(kind, BeforeFirstByte, "the model is overloaded");
    chat::encode_error(dialect, &error).to_string()
}

/// The events of a minimal answer.
pub fn events(text: &str) -> Vec<Event> {
    let words = text.split_inclusive(' ').map(|word| Event::BlockDelta {
        index: 0,
        delta: Delta::Text {
            text: String::from(word),
        },
    });
    let mut events = vec![
        Event::Started {
            id: Some(String::from("answer-1")),
            model: Some(String::from("mock")),
            created: None,
        },
        Event::BlockStart {
            index: 0,
            block: Block::Text,
        },
    ];
    events.extend(words);
    events.push(Event::BlockEnd { index: 0 });
    events.push(Event::Finish {
        reason: FinishReason::Stop,
    });
    events
}

/// The bytes of a stream in a dialect.
pub fn stream_of(dialect: Dialect, events: &[Event]) -> Vec<u8> {
    let mut encoder = Encoder::new(dialect).unwrap();
    let (mut bytes, mut ledger) = (Vec::new(), Ledger::new(Component::Adapter));
    for event in events {
        encoder.push(event, &mut bytes, &mut ledger);
    }
    encoder.finish(&mut bytes);
    bytes
}

const SENTENCE: &str = "The capital of France is Paris, and has been for a long time.";

fn good(dialect: Dialect) -> ScriptedResponse {
    ScriptedResponse::good(content_type(dialect), stream_of(dialect, &events(SENTENCE)))
}

/// The first half of a stream.
fn half(dialect: Dialect) -> ScriptedResponse {
    let bytes = stream_of(dialect, &events(SENTENCE));
    ScriptedResponse::good(
        content_type(dialect),
        bytes.get(..bytes.len() / 2).unwrap_or_default(),
    )
}

/// The same answer, unstreamed.
fn whole(dialect: Dialect) -> String {
    let mut fold = ir::fold::Fold::new();
    events(SENTENCE).into_iter().for_each(|event| fold.push(event));
    let mut ledger = Ledger::new(Component::Adapter);
    let response = fold.finish().unwrap();
    chat::encode_response(dialect, &response, &mut ledger)
        .unwrap()
        .to_string()
}
