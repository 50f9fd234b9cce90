//! Servers with exactly one defect each: our server behind a proxy that modifies requests or responses.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use testkit::http::{MockServer, ReceivedRequest, ScriptedResponse};

use crate::harness::Server;

/// A request, before it is forwarded to the server.
pub(super) struct Request {
    head: String,
    body: Value,
}

impl Request {
    fn without(&mut self, header: &str) {
        let kept = self.head.lines().filter(|line| {
            let name = line.split(':').next().unwrap_or_default();
            !name.eq_ignore_ascii_case(header)
        });
        self.head = kept.collect::<Vec<_>>().join("\r\n");
    }

    fn has(&self, header: &str) -> bool {
        self.head.to_lowercase().contains(&format!("\r\n{header}:"))
    }

    pub(super) fn forget(&mut self, pointer: &str, key: &str) {
        if let Some(Value::Object(map)) = self.body.pointer_mut(pointer) {
            map.remove(key);
        }
    }
}

/// A response, before it is returned to the client.
pub(super) struct Response {
    head: String,
    body: String,
}

impl Response {
    fn streams(&self) -> bool {
        self.head.contains("text/event-stream") || self.head.contains("x-ndjson")
    }

    fn without(&mut self, header: &str) {
        let kept = self.head.lines().filter(|line| {
            let name = line.split(':').next().unwrap_or_default();
            !name.eq_ignore_ascii_case(header)
        });
        self.head = kept.collect::<Vec<_>>().join("\r\n");
    }

    /// The events of a stream, in order.
    fn events(&mut self, change: impl Fn(Vec<String>) -> Vec<String>) {
        if self.streams() {
            let events = self.body.split_inclusive("\n\n").map(String::from).collect();
            self.body = change(events).concat();
        }
    }

    fn replace(&mut self, from: &str, to: &str) {
        self.body = self.body.replace(from, to);
    }
}

pub(super) type Spoil = (fn(&mut Request), fn(&mut Response));

/// The server behind a proxy that applies `spoil`.
pub(super) fn go_between(server: &Server, (ask, say): Spoil) -> MockServer {
    let address = String::from(server.address());
    MockServer::with_responder(move |_, asked: &ReceivedRequest| {
        let mut request = Request {
            head: asked.head.clone(),
            body: asked.json(),
        };
        ask(&mut request);
        request.without("content-length");
        request.without("connection");
        // HTTP/1.0 ends a body by closing the connection, so chunked encoding need not be parsed.
        let head = request.head.replacen("HTTP/1.1", "HTTP/1.0", 1);
        let body = match request.body.is_null() {
            true => String::new(),
            false => request.body.to_string(),
        };
        let mut stream = TcpStream::connect(&address).unwrap();
        let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut response = Response {
            head: head.replacen("HTTP/1.0", "HTTP/1.1", 1),
            body: String::from(body),
        };
        response.without("content-length");
        say(&mut response);
        ScriptedResponse::bytes(format!(
            "{}\r\nconnection: close\r\n\r\n{}",
            response.head, response.body
        ))
    })
}

pub(super) fn leave(_: &mut Request) {}

pub(super) fn pass(_: &mut Response) {}

/// Every defect, with the checks that must detect it.
pub(super) fn defects() -> Vec<(&'static str, Spoil, &'static [&'static str])> {
    vec![
        (
            "no envelope",
            (leave, |r| r.replace(r#""meta":"#, r#""mete":"#)),
            &["envelope.success"],
        ),
        (
            "errors without a code",
            (leave, |r| r.replace("E10", "X10")),
            &["envelope.failure"],
        ),
        (
            "another code",
            (leave, |r| r.replace("E4006", "E4000")),
            &["errors.module"],
        ),
        (
            "a poor declaration",
            (leave, |r| r.replace("supported_transports", "transports")),
            &["capabilities.declared"],
        ),
        (
            "streams unasked",
            (
                |r| {
                    if !r.has("accept") || r.head.contains("*/*") {
                        r.without("accept");
                        r.head.push_str("\r\naccept: text/event-stream");
                    }
                },
                pass,
            ),
            &["negotiation.default"],
        ),
        (
            "deaf to Accept",
            (|r| r.without("accept"), pass),
            &["negotiation.accept"],
        ),
        (
            "deaf to the query",
            (|r| r.head = r.head.replace("response_mode=", "mode="), pass),
            &["negotiation.query"],
        ),
        (
            "deaf to the options",
            (|r| r.forget("/_options", "response_mode"), pass),
            &["negotiation.body"],
        ),
        (
            "deaf to the header",
            (|r| r.without("x-cognitive-response-mode"), pass),
            &["negotiation.header", "negotiation.streaming-sync"],
        ),
        (
            "no warning in the headers",
            (leave, |r| r.without("x-cognitive-warning")),
            &[
                "negotiation.sync-module",
                "negotiation.streaming-sync",
                "degradation.streaming",
            ],
        ),
        (
            "no warning in the body",
            (leave, |r| r.replace("W4010", "W0000")),
            &["negotiation.sync-module"],
        ),
        (
            "deaf to strict",
            (|r| r.forget("/_options", "strict"), pass),
            &[
                "negotiation.strict",
                "recovery.strict-session",
                "recovery.strict-checkpoint",
            ],
        ),
        (
            "never streams unasked",
            (
                |r| {
                    if !r.head.contains("event-stream") {
                        r.without("accept");
                        r.head.push_str("\r\naccept: application/json");
                    }
                },
                pass,
            ),
            &["negotiation.streaming-default"],
        ),
        (
            "strange chunks",
            (leave, |r| r.replace(r#""type":"delta""#, r#""type":"part""#)),
            &["chunks.shape"],
        ),
        (
            "no session",
            (leave, |r| r.replace(r#""session_id""#, r#""session""#)),
            &["chunks.meta"],
        ),
        (
            "a lost chunk",
            (leave, |r| {
                r.events(|events| {
                    events
                        .into_iter()
                        .filter(|e| !e.contains(r#""seq":2,"#))
                        .collect()
                });
            }),
            &["chunks.seq", "chunks.fold"],
        ),
        (
            "a duplicated chunk",
            (leave, |r| {
                r.events(|events| {
                    let doubled = |e: String| {
                        if e.contains(r#""seq":2,"#) {
                            vec![e.clone(), e]
                        } else {
                            vec![e]
                        }
                    };
                    events.into_iter().flat_map(doubled).collect()
                });
            }),
            &["chunks.seq"],
        ),
        (
            "no end",
            (leave, |r| {
                r.events(|events| {
                    events
                        .into_iter()
                        .filter(|e| !e.contains(r#""final":true"#))
                        .collect()
                });
            }),
            &["chunks.end", "recovery.end"],
        ),
        (
            "two ends",
            (leave, |r| {
                r.events(|events| {
                    let last = events.last().cloned();
                    events.into_iter().chain(last).collect()
                });
            }),
            &["chunks.end"],
        ),
        (
            "another end than the chunks add up to",
            (leave, |r| {
                r.events(|events| {
                    let change = |e: String| {
                        if e.contains(r#""final""#) {
                            e.replace(r#""count":2"#, r#""count":3"#)
                        } else {
                            e
                        }
                    };
                    events.into_iter().map(change).collect()
                });
            }),
            &["chunks.fold", "chunks.same"],
        ),
        (
            "wrong checkpoints",
            (leave, |r| r.replace(r#""hash":""#, r#""hash":"f00"#)),
            &["chunks.fold"],
        ),
        (
            "one session for all",
            (leave, |r| {
                r.events(|events| {
                    let one = |e: String| match e.split_once(r#""session_id":""#) {
                        Some((before, after)) => {
                            let rest = after.split_once('"').unwrap().1;
                            format!(r#"{before}"session_id":"sess_one"{rest}"#)
                        }
                        None => e,
                    };
                    events.into_iter().map(one).collect()
                });
            }),
            &["chunks.session"],
        ),
        (
            "ids that are no numbers",
            (leave, |r| r.replace("\nid: ", "\nid: x")),
            &["chunks.sse"],
        ),
        (
            "deltas for snapshots",
            (|r| r.forget("/_options", "chunk_type"), pass),
            &["chunks.snapshot"],
        ),
        (
            "no NDJSON",
            (|r| r.head = r.head.replace("x-ndjson", "json"), pass),
            &["chunks.ndjson"],
        ),
        (
            "a stream with different data",
            (leave, |r| {
                if !r.streams() {
                    r.replace(r#""count":2"#, r#""count":4"#);
                }
            }),
            &["chunks.same"],
        ),
        (
            "no recovery",
            (
                |r| {
                    r.without("x-cognitive-recovery-session");
                    r.forget("", "_recovery");
                },
                pass,
            ),
            &["recovery.headers", "recovery.body", "recovery.end"],
        ),
        (
            "the wrong rest",
            (
                |r| {
                    r.head = r
                        .head
                        .replace("recovery-seq: 2", "recovery-seq: 1")
                        .replace("event-id: 2", "event-id: 1");
                },
                pass,
            ),
            &["recovery.headers", "recovery.last-event-id"],
        ),
        (
            "deaf to Last-Event-ID",
            (|r| r.without("last-event-id"), pass),
            &["recovery.last-event-id"],
        ),
        (
            "checkpoints are not looked at",
            (|r| r.forget("/_recovery", "last_checkpoint"), pass),
            &["recovery.mismatch", "recovery.strict-checkpoint"],
        ),
        (
            "starts over without a word",
            (leave, |r| r.replace(r#""_warnings""#, r#""_remarks""#)),
            &["recovery.mismatch"],
        ),
        (
            "an unknown session is an error",
            (
                |r| {
                    if r.body["_recovery"].is_object() {
                        r.body["_options"]["strict"] = json!(true);
                    }
                },
                pass,
            ),
            &["recovery.unknown", "recovery.mismatch"],
        ),
        (
            "one code for all media",
            (leave, |r| {
                for code in [
                    "E1010", "E1011", "E1012", "E1013", "E1014", "E1015", "E1016", "E1017", "E1019", "E1020",
                ] {
                    r.replace(code, "E1001");
                }
                r.replace("E1002", "E1001");
            }),
            &[
                "media.type",
                "media.size",
                "media.fetch",
                "media.decode",
                "media.decode-stream",
                "media.form",
                "media.mismatch",
                "media.dimensions",
                "media.pixels",
                "media.small",
                "media.upload",
                "media.checksum",
            ],
        ),
        (
            "a good picture is a fault",
            (
                |r| {
                    r.head = r
                        .head
                        .replace("conformance-picture/execute", "conformance-nothing/execute");
                },
                pass,
            ),
            &["degradation.media"],
        ),
    ]
}
