//! A build without the native runtime.

use std::sync::Arc;

use engine::port::Upstream;
use futures::StreamExt;
use ir::{ChatRequest, ErrorKind, Event, Message, Request, Role};
use local::{LocalUpstream, Options};

#[test]
fn every_call_reports_missing_feature() {
    let local = LocalUpstream::new(&Options::new("embedded", "any", "any.gguf"));
    let messages = vec![Message::text(Role::User, "hello")];
    let chat = ChatRequest {
        messages,
        ..ChatRequest::default()
    };
    let request = Arc::new(Request::chat("r", chat));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let events: Vec<Event> = runtime
        .expect("a runtime")
        .block_on(local.stream(request).collect());
    let [Event::Error { error }] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(error.kind, ErrorKind::NotEnabled);
    assert_eq!(error.cognitive_code(), "E4001");
    assert!(error.message.contains("--features local"), "{error}");
    assert_eq!(local.count_tokens("hello"), None);
}
