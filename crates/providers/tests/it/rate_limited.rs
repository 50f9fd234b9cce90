//! The rate limiter: which calls take a slot, and that none is hidden from the back-end.

use std::sync::Arc;
use std::time::Duration;

use engine::port::Upstream;
use futures::StreamExt;
use ir::{ErrorKind, Event, Request};
use providers::{ClientOptions, RateLimited, RequestWindow, anthropic};
use tokio::task::LocalSet;

use crate::kinds::{chat, client, options};
use crate::server::{Server, response};

#[tokio::test]
async fn tokens_are_counted_by_the_limited_back_end() {
    let test = async {
        let json = "content-type: application/json\r\n";
        let answer = response("200 OK", json, "{\"input_tokens\": 17}");
        let server = Server::playing(answer, Duration::ZERO).await;
        let base_url = format!("http://{}", server.address);
        let inner = anthropic(client(&ClientOptions::default()), options(&base_url));
        let limited = RateLimited::new(Arc::new(inner), Arc::new(RequestWindow::new(1)));
        let request = Arc::new(Request::chat("req-1", chat()));

        assert_eq!(limited.count_request(request.clone()).await, Some(17));
        let asked = server.asked().await;
        assert!(asked.starts_with("POST /v1/messages/count_tokens "), "{asked}");

        // The count took no slot: the first call is sent to the closed server, the second is not sent.
        let kind = |events: Vec<Event>| match events.last() {
            Some(Event::Error { error }) => error.kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            kind(limited.stream(request.clone()).collect().await),
            ErrorKind::Network
        );
        assert_eq!(
            kind(limited.stream(request).collect().await),
            ErrorKind::RateLimited
        );
    };
    LocalSet::new().run_until(test).await;
}
