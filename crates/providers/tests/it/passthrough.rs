//! Passthrough of requests and responses between a caller and a server of the same dialect.

use std::sync::Arc;

use bytes::Bytes;
use engine::port::{RawItem, RawRequest, Upstream};
use futures::StreamExt;
use ir::{Dialect, Event, Feature, Request};
use providers::{Client, ClientOptions, HttpOptions, HttpUpstream, anthropic, openai};
use testkit::http::{MockServer, ScriptedResponse};

const CHAT_STREAM: &str = include_str!("../../../wire/tests/fixtures/llama-server/chat-stream.sse");
const CHAT: &str = include_str!("../../../wire/tests/fixtures/llama-server/chat.json");
const MESSAGES_STREAM: &str = include_str!("../../../wire/tests/fixtures/llama-server/messages-stream.sse");

type Make = fn(Client, HttpOptions) -> HttpUpstream;

fn back_end(make: Make, server: &MockServer, change: impl FnOnce(&mut HttpOptions)) -> HttpUpstream {
    let mut options = HttpOptions {
        name: String::from("tested"),
        base_url: server.url(""),
        features: Feature::all().into_iter().collect(),
        ..HttpOptions::default()
    };
    change(&mut options);
    make(Client::new(&ClientOptions::default()).unwrap(), options)
}

fn asked(dialect: Dialect, body: &str) -> (Arc<Request>, Arc<RawRequest>) {
    let chat = wire::chat::decode_request(dialect, serde_json::from_str(body).unwrap()).unwrap();
    let headers = vec![("anthropic-beta", String::from("some-2026"))];
    let verbatim = RawRequest::new(dialect, Bytes::copy_from_slice(body.as_bytes()), headers);
    (Arc::new(Request::chat("req", chat)), Arc::new(verbatim.unwrap()))
}

/// The bytes and the events of a passed-through response; `None` if the request must be encoded.
async fn forward(back_end: &HttpUpstream, dialect: Dialect, body: &str) -> Option<(String, Vec<Event>)> {
    let (request, verbatim) = asked(dialect, body);
    let said: Vec<RawItem> = back_end.stream_raw(&request, &verbatim)?.collect().await;
    let (mut bytes, mut events) = (Vec::new(), Vec::new());
    for said in said {
        match said {
            RawItem::Chunk(piece) => {
                bytes.extend_from_slice(&piece.bytes);
                events.extend(piece.events);
            }
            RawItem::Event(event) => events.push(event),
        }
    }
    Some((String::from_utf8(bytes).unwrap(), events))
}

fn sse(body: &str) -> MockServer {
    MockServer::with_responses(ScriptedResponse::good("text/event-stream", body))
}

#[tokio::test]
async fn stream_is_passed_through_unchanged() {
    let server = sse(CHAT_STREAM);
    let body = "{ \"model\":\"m\" , \"stream\":true,\"temperature\":1.0,\n\"stream_options\":{\"include_usage\":true},\
                \"x-unknown\":[1], \"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    let (bytes, events) = forward(&back_end(openai, &server, |_| {}), Dialect::OpenaiChat, body)
        .await
        .unwrap();
    assert_eq!(bytes, CHAT_STREAM);
    assert!(matches!(events.last(), Some(Event::Finish { .. })));
    assert_eq!(server.received()[0].text(), body);
    let server = sse(MESSAGES_STREAM);
    let body = "{\"model\":\"m\",\"max_tokens\":9,\"stream\":true, \"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    let (bytes, _) = forward(&back_end(anthropic, &server, |_| {}), Dialect::Anthropic, body)
        .await
        .unwrap();
    assert_eq!(bytes, MESSAGES_STREAM);
    let asked = &server.received()[0];
    assert_eq!(asked.text(), body);
    assert_eq!(asked.header("anthropic-beta"), Some("some-2026"));
}

#[tokio::test]
async fn unary_response_is_passed_through_unchanged() {
    let server = MockServer::with_responses(ScriptedResponse::good("application/json", CHAT));
    let body = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
    let (bytes, events) = forward(&back_end(openai, &server, |_| {}), Dialect::OpenaiChat, body)
        .await
        .unwrap();
    assert_eq!(bytes, CHAT);
    assert!(events.iter().any(|event| matches!(event, Event::Usage { .. })));
}

#[tokio::test]
async fn requested_usage_is_hidden_from_the_caller() {
    let server = sse(CHAT_STREAM);
    for options in ["", ",\"stream_options\":{\"x\":1}", ",\"stream_options\":null"] {
        let body = format!("{{\"model\":\"m\",\"messages\":[],\"stream\":true{options}}}");
        let back_end = back_end(openai, &server, |_| {});
        let (bytes, events) = forward(&back_end, Dialect::OpenaiChat, &body).await.unwrap();
        assert!(!bytes.contains("\"choices\":[]") && bytes.ends_with("data: [DONE]\n\n"));
        assert!(events.iter().any(|event| matches!(event, Event::Usage { .. })));
        let asked = server.received().pop().unwrap();
        assert_eq!(asked.json()["stream_options"]["include_usage"], true);
        assert!(
            asked
                .text()
                .starts_with("{\"model\":\"m\",\"messages\":[],\"stream\":true")
        );
    }
    let asked = &server.received()[1];
    assert_eq!(
        asked.json()["stream_options"]["x"],
        1,
        "existing options are preserved"
    );
}

#[tokio::test]
async fn only_the_model_name_is_replaced() {
    let server = sse(CHAT_STREAM);
    let bound = back_end(openai, &server, |options| {
        options.model = Some(String::from("real"));
    });
    let body = "{\"messages\":[],\"model\":\"alias\", \"stream\" : true,\"stream_options\":{\"include_usage\":true}}";
    let (request, verbatim) = asked(Dialect::OpenaiChat, body);
    let mut request = Request::clone(&request);
    let ir::envelope::Payload::Chat(chat) = &mut request.payload else {
        unreachable!();
    };
    chat.model = Some(String::from("real"));
    let pieces = bound.stream_raw(&Arc::new(request), &verbatim).unwrap();
    pieces.collect::<Vec<_>>().await;
    assert_eq!(server.received()[0].text(), body.replace("alias", "real"));
}

#[tokio::test]
async fn request_that_needs_adaptation_is_not_passed_through() {
    let server = sse(CHAT_STREAM);
    let body = "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"}],\"stream\":true}";
    let without = |feature: Feature| {
        back_end(openai, &server, |options| {
            options.features.remove(&feature);
        })
    };
    let chat = Dialect::OpenaiChat;
    assert!(forward(&without(Feature::SystemRole), chat, body).await.is_none());
    assert!(forward(&without(Feature::Stream), chat, body).await.is_none());
    assert!(forward(&without(Feature::Tools), chat, body).await.is_some());
    let other = back_end(anthropic, &server, |_| {});
    assert!(forward(&other, chat, body).await.is_none());
    let bound = back_end(openai, &server, |options| {
        options.model = Some(String::from("other"));
    });
    assert!(forward(&bound, chat, body).await.is_none());
    let twice = "{\"model\":\"m\",\"model\":\"n\",\"messages\":[],\"stream\":true}";
    assert!(RawRequest::new(chat, Bytes::from_static(twice.as_bytes()), Vec::new()).is_none());
}

#[tokio::test]
async fn response_in_unrequested_form_is_returned_as_events() {
    let whole = MockServer::with_responses(ScriptedResponse::good("application/json", CHAT));
    let body = "{\"model\":\"m\",\"messages\":[],\"stream\":true}";
    let (bytes, events) = forward(&back_end(openai, &whole, |_| {}), Dialect::OpenaiChat, body)
        .await
        .unwrap();
    assert_eq!(bytes, "");
    assert!(matches!(events.last(), Some(Event::Finish { .. })));
    let stream = sse(CHAT_STREAM);
    let body = "{\"model\":\"m\",\"messages\":[]}";
    let (bytes, events) = forward(&back_end(openai, &stream, |_| {}), Dialect::OpenaiChat, body)
        .await
        .unwrap();
    assert_eq!(bytes, "");
    assert!(matches!(events.last(), Some(Event::Finish { .. })));
}
