//! MCP over streamable HTTP, at one path. Authentication, host and origin checks are done by the middleware;
//! bodies have the same limits as elsewhere. Newer clients are stateless, older ones get a session that
//! belongs to one client.

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

use super::server::Mcp;
use super::sessions::Sessions;
use super::transport::McpTransport;
use crate::limits;
use crate::request::read_bytes;
use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;

pub(crate) const PATH: &str = "/mcp";
pub(crate) const SESSION: &str = "mcp-session-id";

/// The path in the API description, which only refers to the protocol.
pub(crate) fn described() -> Value {
    let any = json!({"schema": {}});
    json!({"post": {
        "operationId": "mcp",
        "summary": "A message of the Model Context Protocol, over streamable HTTP. GET and DELETE at the same path read and end a session, as the protocol defines.",
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {
                "type": "object",
                "required": ["jsonrpc"],
                "properties": {"jsonrpc": {"const": "2.0"}, "method": {"type": "string"}}
            }}}
        },
        "responses": {
            "200": {"description": "the response", "content": {"application/json": any, "text/event-stream": any}},
            "202": {"description": "accepted; there is no response"},
            "4XX": {"description": "invalid message, unknown session, or not allowed"},
            "5XX": {"description": "the server failed"}
        }
    }})
}

/// HTTP service of the path.
#[derive(Clone)]
pub(crate) struct McpHttpService {
    service: StreamableHttpService<Mcp, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    sessions: Arc<Sessions>,
}

impl McpHttpService {
    pub(crate) fn new(gateway: &Gateway) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(limits::MCP_SESSION_IDLE);
        let manager = Arc::new(manager);
        // Host and origin are already checked by the middleware.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_sse_keep_alive(Some(limits::HEARTBEAT))
            .with_max_request_body_bytes(limits::BODY_BYTES_MAX)
            .with_cancellation_token(gateway.ended.clone());
        let shared = gateway.clone();
        let new_server = move || Ok(Mcp::new(shared.clone(), McpTransport::Http));
        Self {
            service: StreamableHttpService::new(new_server, manager.clone(), config),
            manager,
            sessions: Arc::default(),
        }
    }

    pub(crate) async fn answer(self, gateway: Gateway, request: Request) -> Result<Response, ApiError> {
        let client = ClientStreams::of(request.extensions())?;
        let owner = client.owner();
        let session = request.headers().get(SESSION);
        let session = session.map(|id| String::from(id.to_str().unwrap_or_default()));
        if let Some(id) = &session
            && !self.sessions.is_of(id, &owner)
        {
            let body = ErrorBody::new(Code::E4009, "unknown session");
            return Err(ApiError::with_status(body, StatusCode::NOT_FOUND));
        }
        let method = request.method().clone();
        let stream_permit = match method {
            Method::GET => Some(gateway.stream_permit(&client)?),
            _ => None,
        };
        let (parts, body) = request.into_parts();
        let (bytes, _permit) = read_bytes(&gateway, &client, body).await?;
        let request = Request::from_parts(parts, Body::from(bytes));
        let mut response = self.service.handle(request).await.map(Body::new);
        match (&session, response.headers().get(SESSION)) {
            (Some(id), _) if method == Method::DELETE => {
                self.sessions.forget(id);
                // The session is closed already, so the status is 204 instead of 202.
                if response.status() == StatusCode::ACCEPTED {
                    *response.status_mut() = StatusCode::NO_CONTENT;
                }
            }
            (None, Some(id)) => {
                let opened = id.to_str().unwrap_or_default();
                for gone in self.sessions.add(opened, &owner) {
                    // It may have ended already.
                    self.manager.close_session(&gone).await.ok();
                }
            }
            _ => {}
        }
        Ok(match stream_permit {
            None => response,
            Some(stream_permit) => response.map(|body| {
                let pieces = body.into_data_stream();
                Body::from_stream(pieces.inspect(move |_| {
                    let _permit = &stream_permit;
                }))
            }),
        })
    }
}
