//! Endpoints of the disconnect test and their request bodies. A stream is disconnected at its first token,
//! any other request as soon as the upstream has received it.

use bytes::Bytes;
use clap::ValueEnum;
use serde_json::{Value, json};

/// Boundary of a multipart form.
const BORDER: &str = "loadtest-border";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Endpoint {
    Chat,
    ChatStream,
    /// A stream that is disconnected before its first token.
    ChatEarly,
    Responses,
    ResponsesStream,
    Messages,
    MessagesStream,
    /// A token count, if the upstream is called for it.
    CountTokens,
    Embeddings,
    Images,
    Transcriptions,
    Speech,
    /// A module, unstreamed.
    Module,
    /// A module's stream that is cancelled on disconnect.
    ModuleStream,
    /// A module's stream that continues for the grace period after a disconnect.
    ModuleResumable,
    Canonical,
    CanonicalStream,
    CanonicalEmbeddings,
    /// A module as an MCP tool; the model is its name.
    Mcp,
}

/// The MCP version whose messages need no session.
const MCP_VERSION: &str = "2026-07-28";

impl Endpoint {
    /// Whether the request is disconnected at its first token.
    pub(crate) fn streams(self) -> bool {
        matches!(
            self,
            Self::ChatStream
                | Self::ResponsesStream
                | Self::MessagesStream
                | Self::ModuleStream
                | Self::ModuleResumable
                | Self::CanonicalStream
        )
    }

    pub(crate) fn content_type(self) -> String {
        match self {
            Self::Transcriptions => format!("multipart/form-data; boundary={BORDER}"),
            _ => String::from("application/json"),
        }
    }

    /// Additional request headers.
    pub(crate) fn headers(self, model: &str) -> Vec<(&'static str, String)> {
        match self {
            Self::Mcp => vec![
                ("mcp-protocol-version", String::from(MCP_VERSION)),
                ("mcp-method", String::from("tools/call")),
                ("mcp-name", String::from(model)),
            ],
            _ => Vec::new(),
        }
    }

    /// The accepted content types.
    pub(crate) fn accept(self) -> &'static str {
        match self {
            Self::Mcp => "application/json, text/event-stream",
            _ if self.streams() => "text/event-stream",
            _ => "application/json",
        }
    }

    pub(crate) fn body(self, model: &str) -> Bytes {
        let words = "Say hello and describe the weather in three short sentences, please.";
        let input = json!({"code": "x=1", "text": words});
        let messages = json!([{"role": "user", "content": words}]);
        let mut body = match self {
            Self::Chat | Self::ChatStream | Self::ChatEarly => json!({"model": model, "messages": messages}),
            Self::Responses | Self::ResponsesStream => json!({"model": model, "input": words}),
            Self::Messages | Self::MessagesStream => {
                json!({"model": model, "max_tokens": 256, "messages": messages})
            }
            Self::CountTokens => json!({"model": model, "messages": messages}),
            Self::Embeddings => json!({"model": model, "input": words}),
            Self::Images => json!({"model": model, "prompt": words}),
            Self::Speech => {
                json!({"model": model, "input": words, "voice": "alloy", "response_format": "wav"})
            }
            Self::Transcriptions => return form(model),
            Self::Module | Self::ModuleResumable => json!({"input": input}),
            Self::ModuleStream => {
                json!({"input": input, "_options": {"on_disconnect": "cancel"}})
            }
            Self::Canonical | Self::CanonicalStream => canonical(
                "chat_completions",
                &json!({"model": model, "messages": [
                    {"role": "user", "content_parts": [{"type": "text", "text": words}]}
                ]}),
            ),
            Self::CanonicalEmbeddings => canonical("embeddings", &json!({"model": model, "input": words})),
            Self::Mcp => tool_call(model, &input),
        };
        if matches!(
            self,
            Self::ChatStream | Self::ChatEarly | Self::ResponsesStream | Self::MessagesStream
        ) {
            body["stream"] = json!(true);
        }
        Bytes::from(body.to_string())
    }
}

fn canonical(operation: &str, payload: &Value) -> Value {
    json!({"version": 1, "request_id": "left", "operation": operation, "payload": payload})
}

fn tool_call(name: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": name,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "loadtest", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

/// A form with a second of silence and the model name.
fn form(model: &str) -> Bytes {
    let samples = vec![0_u8; 16_000];
    let mut sound = Vec::from(b"RIFF\xa4\x3e\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00");
    sound.extend_from_slice(&8_000_u32.to_le_bytes());
    sound.extend_from_slice(&16_000_u32.to_le_bytes());
    sound.extend_from_slice(b"\x02\x00\x10\x00data\x80\x3e\x00\x00");
    sound.extend_from_slice(&samples);
    let head = format!(
        "--{BORDER}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n\
         --{BORDER}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\
         Content-Type: audio/wav\r\n\r\n"
    );
    let end = format!("\r\n--{BORDER}--\r\n");
    Bytes::from([head.as_bytes(), &sound, end.as_bytes()].concat())
}
