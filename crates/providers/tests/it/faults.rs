//! The table of faults, for every kind of back-end over real sockets.

use std::time::Duration;

use futures::future::join_all;
use ir::{Dialect, ErrorKind, Event, Phase};
use providers::{ClientOptions, HttpOptions, Timeouts};
use testkit::fault::{FAULTS, Fault, events, stream_of};
use testkit::http::{MockServer, ScriptedResponse};

use crate::kinds::{KEY, KINDS, Open, PATIENT, ask, chat, client, error_of, options, run, text};

/// Short timeouts for timeout faults only.
fn timeouts(fault: &Fault) -> Timeouts {
    let short = Duration::from_millis(500);
    match (fault.kind, fault.status, fault.phase) {
        (ErrorKind::Timeout, None, Phase::MidStream) => Timeouts {
            idle: short,
            ..PATIENT
        },
        (ErrorKind::Timeout, None, _) => Timeouts {
            first_byte: short,
            ..PATIENT
        },
        _ => PATIENT,
    }
}

/// The deviation from the table, if any.
async fn hold(fault: &Fault, open: Open, dialect: Dialect) -> Option<String> {
    let broken = fault.start(dialect);
    let back_end = open(
        client(&ClientOptions::default()),
        HttpOptions {
            timeouts: timeouts(fault),
            ..options(&broken.url)
        },
    );
    let seen = ask(&back_end, chat()).await;
    let error = error_of(&seen);
    let what = format!("{} as {dialect}: {error:?}", fault.name);
    assert!(!error.message.contains(KEY), "{what}");
    let wait = (fault.name == "429 with Retry-After").then_some(7000);
    // An error body with status 200 may contain another status.
    let status = error.status == fault.status || fault.name == "error inside a 200";
    let same = (error.kind, error.phase) == (fault.kind, fault.phase);
    (!same || !status || error.retry_after_ms != wait).then_some(what)
}

#[test]
fn every_fault_of_every_kind_is_one_error() {
    run(async {
        let all = FAULTS.iter().flat_map(|fault| {
            let kinds = KINDS.iter();
            kinds.map(move |(open, dialect)| hold(fault, *open, *dialect))
        });
        let wrong: Vec<_> = join_all(all).await.into_iter().flatten().collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}

#[test]
fn truncated_stream_is_one_error_or_complete() {
    const SENTENCE: &str = "It is Paris, bien sûr.";
    run(async {
        for (open, dialect) in KINDS {
            let bytes = stream_of(dialect, &events(SENTENCE));
            let kind = if dialect == Dialect::Ollama {
                "application/x-ndjson"
            } else {
                "text/event-stream"
            };
            let cuts = bytes.len();
            let server = MockServer::with_responder(move |count, _| {
                ScriptedResponse::good(kind, &bytes[..count.min(bytes.len())])
            });
            let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
            let mut whole = 0;
            for cut in 0..=cuts {
                let seen = ask(&back_end, chat()).await;
                match text(&seen) {
                    Ok(text) => {
                        assert_eq!(text, SENTENCE, "{dialect} cut at {cut}");
                        whole += 1;
                    }
                    Err(_) => {
                        let error = error_of(&seen);
                        assert_eq!(
                            error.kind,
                            ErrorKind::Network,
                            "{dialect} cut at {cut}: {error:?}"
                        );
                        assert_eq!(
                            whole, 0,
                            "{dialect} was complete before {cut} and is not after it"
                        );
                    }
                }
            }
            assert!(whole > 0 && whole < cuts / 2, "{dialect}: {whole} of {cuts}");
        }
    });
}

#[test]
fn unknown_finish_reason_ends_the_response() {
    run(async {
        let mut said = events("Yes.");
        said.pop();
        for (open, dialect) in KINDS {
            let reason = ir::event::FinishReason::Other(String::from("mystery"));
            let mut said = said.clone();
            said.push(Event::Finish { reason });
            let answer = ScriptedResponse::good("", stream_of(dialect, &said));
            let server = MockServer::with_responses(answer);
            let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
            let seen = ask(&back_end, chat()).await;
            assert_eq!(text(&seen).as_deref(), Ok("Yes."), "{dialect}: {seen:?}");
        }
    });
}

#[test]
fn invalid_tool_arguments_are_preserved() {
    let broken = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\
                  \"function\":{\"name\":\"look\",\"arguments\":\"{\\\"where\\\": \"}}]}}]}\n\n\
                  data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    run(async {
        let server = MockServer::with_responses(ScriptedResponse::good("text/event-stream", broken));
        let back_end = providers::openai(client(&ClientOptions::default()), options(&server.url("")));
        let seen = ask(&back_end, chat()).await;
        let mut fold = ir::fold::Fold::new();
        seen.iter().cloned().for_each(|event| fold.push(event));
        let response = fold
            .finish()
            .expect("the response is complete; its arguments are not");
        let calls: Vec<_> = response
            .parts
            .iter()
            .map(|part| format!("{:?}", part.body))
            .collect();
        assert!(
            calls
                .iter()
                .any(|call| call.contains("look") && call.contains("where")),
            "{calls:?}"
        );
    });
}

#[test]
fn total_timeout_applies_to_active_streams() {
    run(async {
        let mut drip = ScriptedResponse::good("text/event-stream", "");
        for _ in 0..400 {
            drip = drip.then(": still here\n\n").pause(Duration::from_millis(50));
        }
        let server = MockServer::with_responses(drip);
        let limits = Timeouts {
            total: Duration::from_millis(700),
            ..PATIENT
        };
        let back_end = providers::openai(
            client(&ClientOptions::default()),
            HttpOptions {
                timeouts: limits,
                ..options(&server.url(""))
            },
        );
        let seen = ask(&back_end, chat()).await;
        let error = error_of(&seen);
        assert_eq!(error.kind, ErrorKind::Timeout, "{error:?}");
        assert!(error.message.contains("not complete after 700 ms"), "{error:?}");
    });
}

#[test]
fn quoted_key_is_redacted_from_errors() {
    run(async {
        let body = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY}\"}}}}");
        let answer =
            ScriptedResponse::response("401 Unauthorized", &[("content-type", "application/json")], body);
        let server = MockServer::with_responses(answer);
        for (open, _) in KINDS {
            let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
            let seen = ask(&back_end, chat()).await;
            let error = error_of(&seen);
            assert!(
                !error.message.contains(KEY) && error.message.contains("(key)"),
                "{error:?}"
            );
        }
    });
}
