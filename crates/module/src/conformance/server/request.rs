//! One request to a server under test, as data.

use serde_json::Value;

use super::response::parse_events;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// What carries the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Http,
    /// A WebSocket: the body is sent as the only message; every received message becomes a line of the
    /// response body.
    Socket,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServerRequest {
    pub method: Method,
    /// Below the address of the server, query included.
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<Value>,
    pub over: Transport,
    /// Disconnect after this many numbered chunks.
    pub chunks_max: Option<usize>,
}

impl ServerRequest {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::Get,
            path: path.into(),
            headers: Vec::new(),
            body: None,
            over: Transport::Http,
            chunks_max: None,
        }
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self {
            method: Method::Post,
            body: Some(body),
            ..Self::get(path)
        }
    }

    pub(super) fn socket(message: Value) -> Self {
        Self {
            body: Some(message),
            over: Transport::Socket,
            ..Self::get("/v1/ws")
        }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn query(mut self, query: &str) -> Self {
        self.path = format!("{}?{query}", self.path);
        self
    }

    pub(super) fn until(mut self, chunks: usize) -> Self {
        self.chunks_max = Some(chunks);
        self
    }

    /// Whether the received bytes suffice: `chunks_max` chunks, or on a WebSocket, which the server does not
    /// close, the terminal event.
    pub fn is_enough(&self, body: &[u8]) -> bool {
        if self.chunks_max.is_none() && self.over == Transport::Http {
            return false;
        }
        let events = parse_events(body);
        let chunks = events.iter().filter(|event| event.seq().is_some()).count();
        let ended = events.iter().any(super::response::ReceivedEvent::is_last);
        self.chunks_max.is_some_and(|max| chunks >= max) || (self.over == Transport::Socket && ended)
    }
}

/// Requests sent before the checks.
impl ServerRequest {
    pub fn list_modules() -> Self {
        Self::get("/v1/modules")
    }

    pub fn show_module(name: &str) -> Self {
        Self::get(format!("/v1/modules/{name}"))
    }
}
