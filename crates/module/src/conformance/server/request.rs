//! One request to a server under test, as data.

use serde_json::Value;

use super::response::heard_of;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// What carries the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Http,
    /// A WebSocket: the body is the one message that is sent, and every message that comes back is a line of
    /// the answer.
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
    /// Hang up when this many numbered chunks have come.
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

    /// Whether what has come so far is all that is wanted: so many chunks, or on a socket, which does not end
    /// by itself, the last event of the run.
    pub fn is_enough(&self, body: &[u8]) -> bool {
        if self.chunks_max.is_none() && self.over == Transport::Http {
            return false;
        }
        let heard = heard_of(body);
        let chunks = heard.iter().filter(|event| event.seq().is_some()).count();
        let ended = heard.iter().any(super::response::ReceivedEvent::is_last);
        self.chunks_max.is_some_and(|max| chunks >= max) || (self.over == Transport::Socket && ended)
    }
}

/// What is asked before any check.
impl ServerRequest {
    pub fn list_modules() -> Self {
        Self::get("/v1/modules")
    }

    pub fn show_module(name: &str) -> Self {
        Self::get(format!("/v1/modules/{name}"))
    }
}
