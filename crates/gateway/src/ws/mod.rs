//! Runs over a WebSocket: many on one connection, each under an id chosen by the client. The events are those
//! of the other transports; only the framing differs.

mod message;
mod socket;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use module::Code;
use module::envelope::ErrorBody;
use serde_json::json;

use self::socket::Socket;
use crate::auth::{AuthenticatedCaller, TicketScope};
use crate::endpoint::{Endpoint, any_of_type, object, text};
use crate::limits;
use crate::response::{self, ApiError};
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::trace;

pub(crate) fn operations() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/ws", "socket", open)
            .summary("Opens a WebSocket for many runs: receives execute, resume, cancel, ping; sends event, pong, error.")
            .query(
                "token",
                "A ticket, for clients that cannot send headers. Valid once, for one minute.",
                text(),
            )
            .returns_websocket()
            .error_codes(&[Code::E1001]),
        Endpoint::post("/v1/ws/token", "issue_socket_ticket", ticket)
            .summary("Issues a ticket for one WebSocket, for pages, which cannot send headers with it.")
            .returns(object(&[
                ("token", text()),
                ("url", text()),
                (
                    "expires_at_ms",
                    any_of_type("integer", "Milliseconds since 1970."),
                ),
            ])),
    ]
}

async fn ticket(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
) -> Result<Response, ApiError> {
    let now_ms = gateway.engine().clock().now_ms();
    let issued = gateway.tickets.issue(&caller, TicketScope::Socket, now_ms)?;
    let data = json!({
        "url": format!("{}?token={}", TicketScope::Socket.path(), issued.token),
        "token": issued.token,
        "expires_at_ms": issued.expires_at_ms,
    });
    Ok(response::resource("the ticket is valid once", data))
}

async fn open(
    gateway: Gateway,
    extensions: Extensions,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| {
        let body = ErrorBody::new(
            Code::E1001,
            format!("not a WebSocket request: {}", rejection.body_text()),
        );
        ApiError::new(body.suggest("open this path as a WebSocket"))
    })?;
    let client = ClientStreams::of(&extensions)?;
    let trace = trace::of(&headers);
    let upgrade = upgrade
        .max_message_size(limits::BODY_BYTES_MAX)
        .max_frame_size(limits::BODY_BYTES_MAX)
        .max_write_buffer_size(limits::SEND_BUFFER_BYTES_MAX + limits::BODY_BYTES_MAX);
    Ok(upgrade.on_upgrade(move |connection| {
        let open = gateway.sockets.token();
        async move {
            gateway.metrics.sockets.inc();
            let metrics = gateway.metrics.clone();
            Socket::new(gateway, client, trace).serve(connection).await;
            metrics.sockets.dec();
            drop(open);
        }
    }))
}
