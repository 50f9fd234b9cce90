//! Runs over a WebSocket: many of them on one connection, each under an id that the client chose. The
//! events are those of the other transports; only the frame around them differs.

mod message;
mod socket;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::Extensions;
use axum::response::Response;
use module::Code;
use module::envelope::ErrorBody;

use self::socket::Socket;
use crate::limits;
use crate::operation::Operation;
use crate::reply::Refusal;
use crate::seats::Client;
use crate::state::Gateway;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/v1/ws", "socket", open)
            .says("A WebSocket for many runs: execute, resume, cancel and ping go in; event, pong and error come out.")
            .gives_socket()
            .fails(&[Code::E1001]),
    ]
}

async fn open(
    State(gateway): State<Gateway>,
    extensions: Extensions,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let upgrade = upgrade.map_err(|rejection| {
        let body = ErrorBody::new(Code::E1001, format!("no WebSocket: {}", rejection.body_text()));
        Refusal::new(body.suggest("open this path as a WebSocket"))
    })?;
    let client = Client::of(&extensions)?;
    let upgrade = upgrade
        .max_message_size(limits::BODY_BYTES_MAX)
        .max_frame_size(limits::BODY_BYTES_MAX)
        .max_write_buffer_size(limits::SEND_BUFFER_BYTES_MAX + limits::BODY_BYTES_MAX);
    Ok(upgrade.on_upgrade(move |connection| {
        let open = gateway.sockets.token();
        async move {
            gateway.metrics.sockets.inc();
            let metrics = gateway.metrics.clone();
            Socket::new(gateway, client).serve(connection).await;
            metrics.sockets.dec();
            drop(open);
        }
    }))
}
