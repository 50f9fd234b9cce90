//! A server that sends one fixed response, byte for byte, and records the request.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: JoinHandle<String>,
}

impl Server {
    /// Sends `answer`, a complete HTTP message, to the first connection after a pause, then closes it.
    pub(crate) async fn playing(answer: impl Into<Vec<u8>>, pause: Duration) -> Self {
        let answer = answer.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let asked = tokio::task::spawn_local(async move {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let asked = read_request(&mut stream).await;
            tokio::time::sleep(pause).await;
            // The client may have closed the connection.
            stream.write_all(&answer).await.ok();
            stream.shutdown().await.ok();
            asked
        });
        Self { address, asked }
    }

    /// Accepts one connection and responds twice.
    pub(crate) async fn answering_twice(answer: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let asked = tokio::task::spawn_local(async move {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let mut asked = String::new();
            for _ in 0..2 {
                asked.push_str(&read_request(&mut stream).await);
                stream.write_all(&answer).await.expect("the caller listens");
            }
            asked
        });
        Self { address, asked }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The received request, head and body.
    pub(crate) async fn asked(self) -> String {
        self.asked.await.expect("the server completed")
    }
}

/// A response with a body that is delimited by the end of the connection.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n{body}").into_bytes()
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0u8; 4096];
    loop {
        let count = stream.read(&mut buffer).await.expect("readable");
        seen.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&seen).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}
