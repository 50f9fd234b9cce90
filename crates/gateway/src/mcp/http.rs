//! MCP over streamable HTTP, at one path. Who may come in, by which name and from which page is decided
//! before; bodies are read with the limits of all others. Newer clients bring everything with each request,
//! older ones get a session that is theirs alone.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use futures::StreamExt;
use module::Code;
use module::envelope::ErrorBody;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};

use super::transport::McpTransport;
use super::server::Mcp;
use super::sessions::Sessions;
use crate::limits;
use crate::response::ApiError;
use crate::request::read_bytes;
use crate::stream_limit::ClientStreams;
use crate::state::Gateway;

pub(crate) const PATH: &str = "/mcp";
pub(crate) const SESSION: &str = "mcp-session-id";

/// The path in the server's description: that it is there, and who says what is spoken. More than that is
/// the protocol's own to say.
pub(crate) fn described() -> Value {
    let any = json!({"schema": {}});
    json!({"post": {
        "operationId": "mcp",
        "summary": "A message of the Model Context Protocol, over streamable HTTP. Sessions are read and ended by GET and DELETE at the same path, as the protocol says.",
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {
                "type": "object",
                "required": ["jsonrpc"],
                "properties": {"jsonrpc": {"const": "2.0"}, "method": {"type": "string"}}
            }}}
        },
        "responses": {
            "200": {"description": "the answer", "content": {"application/json": any, "text/event-stream": any}},
            "202": {"description": "it was taken in, and has no answer"},
            "4XX": {"description": "no message of the protocol, no such session, or not allowed"},
            "5XX": {"description": "the server failed"}
        }
    }})
}

/// What answers at the path.
#[derive(Clone)]
pub(crate) struct McpHttpService {
    gateway: Gateway,
    service: StreamableHttpService<Mcp, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    sessions: Arc<Sessions>,
}

impl McpHttpService {
    pub(crate) fn new(gateway: &Gateway) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(limits::MCP_SESSION_IDLE);
        let manager = Arc::new(manager);
        // Names and origins are checked for every path alike, and have been by now.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_sse_keep_alive(Some(limits::HEARTBEAT))
            .with_max_request_body_bytes(limits::BODY_BYTES_MAX)
            .with_cancellation_token(gateway.ended.clone());
        let spoken = gateway.clone();
        let speak = move || Ok(Mcp::new(spoken.clone(), McpTransport::Http));
        Self {
            gateway: gateway.clone(),
            service: StreamableHttpService::new(speak, manager.clone(), config),
            manager,
            sessions: Arc::default(),
        }
    }

    pub(crate) async fn answer(self, request: Request) -> Result<Response, ApiError> {
        let client = ClientStreams::of(request.extensions())?;
        let owner = client.owner();
        let session = request.headers().get(SESSION);
        let session = session.map(|id| String::from(id.to_str().unwrap_or_default()));
        if let Some(id) = &session
            && !self.sessions.is_of(id, &owner)
        {
            let body = ErrorBody::new(Code::E4009, "there is no such session");
            return Err(ApiError::with_status(body, StatusCode::NOT_FOUND));
        }
        let method = request.method().clone();
        let seat = match method {
            Method::GET => {
                let max = self.gateway.settings().streams_per_client_max;
                Some(self.gateway.stream_limiter.acquire(&client, max)?)
            }
            _ => None,
        };
        let (parts, body) = request.into_parts();
        let bytes = read_bytes(body, self.gateway.settings().body_read).await?;
        let request = Request::from_parts(parts, Body::from(bytes));
        let mut response = self.service.handle(request).await.map(Body::new);
        match (&session, response.headers().get(SESSION)) {
            (Some(id), _) if method == Method::DELETE => {
                self.sessions.forget(id);
                // It is closed by now, and clients want to hear that rather than that it will be.
                if response.status() == StatusCode::ACCEPTED {
                    *response.status_mut() = StatusCode::NO_CONTENT;
                }
            }
            (None, Some(id)) => {
                let opened = id.to_str().unwrap_or_default();
                for gone in self.sessions.add(opened, &owner) {
                    // Whether it had ended by itself makes no difference.
                    self.manager.close_session(&gone).await.ok();
                }
            }
            _ => {}
        }
        Ok(match seat {
            None => response,
            Some(seat) => response.map(|body| {
                let pieces = body.into_data_stream();
                Body::from_stream(pieces.inspect(move |_| {
                    let _held = &seat;
                }))
            }),
        })
    }
}
