//! WebSocket requests to the server under test: sends one message and collects the received messages as
//! lines.

use futures::{SinkExt, StreamExt};
use module::conformance::server::{ServerRequest, ServerResponse};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::client::Client;
use super::limits;

const SWITCHED: u16 = 101;

pub(super) async fn exchange(client: &Client, ask: &ServerRequest) -> Result<ServerResponse, String> {
    let url = client.url(&ask.path);
    let Some(rest) = url.strip_prefix("http://") else {
        return Ok(refused(0, "WebSocket checks require plain HTTP"));
    };
    let request = format!("ws://{rest}").into_client_request();
    let mut request = request.map_err(|error| error.to_string())?;
    if let Some(value) = client.authorization() {
        request.headers_mut().insert("authorization", value);
    }
    let mut socket = match tokio_tungstenite::connect_async(request).await {
        Ok((socket, _)) => socket,
        Err(Error::Http(response)) => return Ok(refused(response.status().as_u16(), "")),
        Err(error) => return Err(error.to_string()),
    };
    let message = ask.body.clone().unwrap_or_default();
    let sent = socket.send(Message::text(message.to_string())).await;
    sent.map_err(|error| error.to_string())?;
    let mut answer = refused(SWITCHED, "");
    for _ in 0..limits::MESSAGES_MAX {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => {
                answer.body.extend_from_slice(text.as_bytes());
                answer.body.push(b'\n');
            }
            Some(Ok(Message::Close(_))) | None => break,
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Err(error.to_string()),
        }
        if answer.body.len() > limits::ANSWER_BYTES_MAX {
            return Err(format!("the answer exceeds {} bytes", limits::ANSWER_BYTES_MAX));
        }
        if ask.is_enough(&answer.body) {
            break;
        }
    }
    socket.close(None).await.ok();
    Ok(answer)
}

/// A response without headers.
fn refused(status: u16, said: &str) -> ServerResponse {
    ServerResponse {
        status,
        headers: Vec::new(),
        body: said.as_bytes().to_vec(),
    }
}
