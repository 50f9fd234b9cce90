//! A scripted response: bytes, pauses, and how the connection ends.

use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct ScriptedResponse {
    pub pieces: Vec<ResponsePart>,
    /// Whether the client may send another request on the same connection.
    pub keeps_open: bool,
}

#[derive(Clone, Debug)]
pub enum ResponsePart {
    Bytes(Vec<u8>),
    /// The same bytes repeated, stored once.
    Repeat(Vec<u8>, usize),
    Pause(Duration),
}

impl ScriptedResponse {
    /// No response: the connection is closed.
    pub fn nothing() -> Self {
        Self::default()
    }

    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::default().then(bytes)
    }

    /// A response whose body ends with the connection. `headers` are complete lines.
    pub fn response(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let mut head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Self::bytes(head).then(body.as_ref())
    }

    /// A successful response of a content type.
    pub fn good(content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::response("200 OK", &[("content-type", content_type)], body)
    }

    #[must_use]
    pub fn then(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.pieces.push(ResponsePart::Bytes(bytes.into()));
        self
    }

    #[must_use]
    pub fn repeat(mut self, bytes: impl Into<Vec<u8>>, times: usize) -> Self {
        self.pieces.push(ResponsePart::Repeat(bytes.into(), times));
        self
    }

    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pieces.push(ResponsePart::Pause(pause));
        self
    }

    /// A pause before the first byte.
    #[must_use]
    pub fn after(mut self, pause: Duration) -> Self {
        self.pieces.insert(0, ResponsePart::Pause(pause));
        self
    }
}
