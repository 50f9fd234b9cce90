//! Servers that answer, or are left, before they have read a request.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderMap;
use tokio::sync::oneshot;

use super::super::RequestBody;
use super::super::tests::{COMPLETE, LARGE_BYTES, direct, finished};

/// Sends `answer` after the first bytes of a request, and does not read the rest before the returned sender is
/// used. The thread returns the number of bytes that the client sent until it closed the connection.
fn stalled_server(
    answer: &'static str,
) -> (String, oneshot::Receiver<()>, mpsc::Sender<()>, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (answered, is_answered) = oneshot::channel();
    let (resume, resumed) = mpsc::channel();
    let served = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 64 * 1024];
        let mut total_bytes = socket.read(&mut buffer).unwrap();
        socket.write_all(answer.as_bytes()).unwrap();
        answered.send(()).ok();
        resumed.recv().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        loop {
            match socket.read(&mut buffer) {
                Ok(count) if count > 0 => total_bytes += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("the connection is open after {total_bytes} bytes")
                }
                _ => return total_bytes,
            }
        }
    });
    (url, is_answered, resume, served)
}

#[tokio::test]
async fn dropping_a_response_aborts_the_request() {
    for answer in [
        "HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nbig\r\n",
    ] {
        let (url, _, resume, served) = stalled_server(answer);
        let client = direct();
        let content = RequestBody::Bytes(Bytes::from(vec![b'x'; LARGE_BYTES]));
        let mut response = client.post(&url, HeaderMap::new(), content).await.unwrap();
        assert_eq!(&response.content.next().await.unwrap().unwrap()[..], b"big");
        drop(response);
        resume.send(()).unwrap();
        let sent_bytes = finished(served).await;
        assert!(sent_bytes < LARGE_BYTES, "{sent_bytes} bytes after {answer:?}");
    }
}

#[tokio::test]
async fn dropping_a_call_aborts_the_request() {
    let (url, answered, resume, served) = stalled_server("");
    let client = direct();
    let content = RequestBody::Bytes(Bytes::from(vec![b'x'; LARGE_BYTES]));
    tokio::select! {
        _ = client.post(&url, HeaderMap::new(), content) => panic!("a response"),
        read = answered => read.unwrap(),
    }
    resume.send(()).unwrap();
    let sent_bytes = finished(served).await;
    assert!(sent_bytes < LARGE_BYTES, "{sent_bytes} bytes");
}

#[tokio::test]
async fn connection_is_reused_after_a_large_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        // Further connections are refused.
        drop(listener);
        for _ in 0..3 {
            // The content ends with the only byte of its kind.
            let mut buffer = vec![0; 64 * 1024];
            let mut last = b'x';
            while last != b'!' {
                let count = socket.read(&mut buffer).unwrap();
                last = buffer[..count].last().copied().unwrap();
            }
            socket.write_all(COMPLETE[0].0.as_bytes()).unwrap();
        }
    });
    let client = direct();
    for _ in 0..3 {
        let mut body = vec![b'x'; LARGE_BYTES];
        body.push(b'!');
        let content = RequestBody::Bytes(Bytes::from(body));
        let mut response = client.post(&url, HeaderMap::new(), content).await.unwrap();
        assert_eq!(&response.content.next().await.unwrap().unwrap()[..], b"hello");
        assert!(response.content.next().await.is_none());
        drop(response);
        // The connection returns to the pool after its last byte was read.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    finished(served).await;
}
