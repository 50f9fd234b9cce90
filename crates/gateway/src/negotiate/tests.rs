use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderValue};
use engine::RunMode;
use module::manifest::ResponseMode;

use super::{Accept, ModeSignals, RequestedMode};
use crate::allocated_bytes::assert_linear;
use crate::framing::Framing;

fn accept(value: &'static str) -> ModeSignals {
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static(value));
    ModeSignals::from_headers(&headers).unwrap()
}

#[test]
fn stronger_signal_takes_precedence() {
    let sync = Some(RequestedMode::Sync);
    let stream = Some(RequestedMode::Streaming);
    for (header, body, query, accept, mode) in [
        (sync, stream, stream, stream, RunMode::Sync),
        (None, stream, sync, sync, RunMode::Stream),
        (None, None, stream, sync, RunMode::Stream),
        (None, None, None, stream, RunMode::Stream),
        (None, None, None, None, RunMode::Sync),
    ] {
        let signals = ModeSignals {
            header,
            body,
            query,
            accept,
            framing: Framing::Sse,
        };
        let negotiated = signals.negotiate(ResponseMode::Both, false).unwrap();
        assert_eq!(negotiated.mode, mode, "{signals:?}");
    }
}

#[test]
fn mismatch_warns_or_is_refused_if_strict() {
    for (module, wanted) in [
        (ResponseMode::Sync, "text/event-stream"),
        (ResponseMode::Streaming, "application/json"),
    ] {
        let negotiated = accept(wanted).negotiate(module, false).unwrap();
        assert_eq!(negotiated.mode, RunMode::Sync);
        assert!(negotiated.warning.is_some());
        assert_eq!(accept(wanted).negotiate(module, true).unwrap_err().code, "E4010");
    }
}

#[test]
fn accept_selects_framing() {
    assert_eq!(accept("application/x-ndjson").framing, Framing::Ndjson);
    assert_eq!(accept("text/event-stream;q=1, */*").framing, Framing::Sse);
    assert_eq!(accept("text/html, application/x-ndjson").framing, Framing::Ndjson);
    assert_eq!(accept("*/*").accept, None);
    for (value, wanted) in [
        (
            "text/event-stream;q=0.1, application/json;q=0.9",
            Some(RequestedMode::Sync),
        ),
        (
            "application/json; q=0.5, text/event-stream; q=0.8",
            Some(RequestedMode::Streaming),
        ),
        (
            "text/event-stream;q=0, application/json",
            Some(RequestedMode::Sync),
        ),
        ("text/event-stream;q=0", None),
        ("application/json, text/event-stream", Some(RequestedMode::Sync)),
    ] {
        assert_eq!(accept(value).accept, wanted, "{value}");
    }
}

#[test]
fn accept_headers_are_read_in_linear_time() {
    let values: [fn(usize) -> HeaderMap; 2] = [
        |size| {
            let value = "text/event-stream;q=0,".repeat(size);
            HeaderMap::from_iter([(ACCEPT, value.parse().unwrap())])
        },
        |size| {
            let mut headers = HeaderMap::new();
            for _ in 0..size {
                headers.append(ACCEPT, "application/x-ndjson;a=b;q=0, a/b".parse().unwrap());
            }
            headers
        },
    ];
    for headers in values {
        assert_linear(1_000, headers, |headers| drop(Accept::of(&headers)));
    }
}
