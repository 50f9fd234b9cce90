//! Clients that disconnect: the upstream connection is closed at once, for streamed and unstreamed requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures::StreamExt;
use ir::Dialect;
use serde_json::json;
use testkit::fault::{events, stream_of};
use tokio::task::JoinSet;

use crate::harness::Stage;
use crate::vendor_client::{DIALECTS, ask, path, question};

/// A back-end that sends the start of a response, or nothing, and reports when the connection was closed.
struct Listening {
    url: String,
    asked: mpsc::Receiver<()>,
    left: mpsc::Receiver<Instant>,
}

impl Listening {
    /// Sends `first` to every client, and then nothing more.
    fn sending(first: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let ((told, asked), (gone, left)) = (mpsc::channel(), mpsc::channel());
        thread::spawn(move || {
            for caller in listener.incoming() {
                let (Ok(caller), told, gone, first) = (caller, told.clone(), gone.clone(), first.clone())
                else {
                    return;
                };
                thread::spawn(move || serve(caller, &first, &told, &gone));
            }
        });
        Self { url, asked, left }
    }
}

fn serve(mut caller: TcpStream, first: &str, told: &mpsc::Sender<()>, gone: &mpsc::Sender<Instant>) {
    let mut buffer = [0; 64 * 1024];
    if caller.read(&mut buffer).unwrap_or(0) == 0 {
        return;
    }
    caller.write_all(first.as_bytes()).ok();
    told.send(()).ok();
    while caller.read(&mut buffer).is_ok_and(|count| count > 0) {}
    gone.send(Instant::now()).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_closes_the_upstream_connection() {
    let complete = String::from_utf8(stream_of(Dialect::OpenaiChat, &events("Hello there"))).unwrap();
    let begun: String = complete.split_inclusive("\n\n").take(3).collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for streams in [true, false] {
        let first = match streams {
            true => format!("{head}{begun}"),
            false => String::new(),
        };
        let behind = Listening::sending(first);
        let stage = Stage::new();
        let config = stage.config(&format!(
            "[[backends]]\nname = \"b\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n",
            behind.url
        ));
        let server = stage.serve_with(&["--config", &config], &[]);
        for dialect in DIALECTS {
            let mut body = question(dialect, "m", "hi");
            body["stream"] = json!(streams);
            if streams {
                let mut bytes = ask(&server, dialect, &body).await.bytes_stream();
                assert!(bytes.next().await.unwrap().is_ok(), "{dialect}");
                behind.asked.recv_timeout(Duration::from_secs(5)).unwrap();
                drop(bytes);
            } else {
                let waiting = server.post(path(dialect)).body(body.to_string()).send();
                let mut callers = JoinSet::new();
                callers.spawn(waiting);
                let asked = tokio::task::block_in_place(|| behind.asked.recv_timeout(Duration::from_secs(5)));
                asked.unwrap();
                drop(callers);
            }
            let began = Instant::now();
            let left = tokio::task::block_in_place(|| behind.left.recv_timeout(Duration::from_secs(5)));
            let after = left
                .expect("the upstream connection is closed")
                .saturating_duration_since(began);
            // Latency is measured elsewhere; this bound tolerates a loaded machine.
            assert!(after < Duration::from_secs(2), "{dialect} {streams}: {after:?}");
        }
    }
}
