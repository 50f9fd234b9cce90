//! Responses in every framing, reuse of connections, refusals, credentials and proxies.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use ir::{Error, ErrorKind, Phase};
use secrecy::SecretString;

use super::{Client, ClientError, ClientOptions, Proxy, RequestBody};
use crate::limits::{ANSWER_HEAD_BYTES_MAX, REQUEST_HEAD_BYTES_MAX};

/// Complete responses, their content, and whether the connection is reused.
pub(super) const COMPLETE: &[(&str, &str, bool)] = &[
    ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", true),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n",
        "hello, world",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n",
        "hello",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi",
        "hi",
        false,
    ),
    ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", false),
    ("HTTP/1.0 200 OK\r\n\r\nold", "old", false),
    (
        "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nno",
        "no",
        true,
    ),
    (
        "HTTP/1.1 302 Found\r\nlocation: http://elsewhere/\r\ncontent-length: 4\r\n\r\ngone",
        "gone",
        true,
    ),
    ("HTTP/1.1 204 No Content\r\n\r\n", "", true),
];

/// Responses that are truncated or malformed.
const BROKEN: &[&str] = &[
    "",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfive\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nhello",
    "SSH-2.0-nothing\r\n\r\n",
];

pub(super) fn direct() -> Client {
    Client::new(&ClientOptions::default()).unwrap()
}

/// Sends the same response to every request, and closes the connection if `close`. Counts connections.
fn server(answer: String, close: bool) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/chat", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().filter_map(Result::ok) {
            counted.fetch_add(1, Ordering::Relaxed);
            let answer = answer.clone();
            std::thread::spawn(move || {
                while !read_request(&mut socket).is_empty()
                    && socket.write_all(answer.as_bytes()).is_ok()
                    && !close
                {}
            });
        }
    });
    (url, count)
}

/// Accepts one connection: answers its first request, then returns what was read until the client closed it.
fn one_connection(answer: &'static str) -> (String, JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let request = read_request(&mut socket);
        socket.write_all(answer.as_bytes()).unwrap();
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).ok();
        (request, rest)
    });
    (address, served)
}

/// The tasks of the client go on meanwhile, which is how the connection is closed.
pub(super) async fn finished<T: Send + 'static>(thread: JoinHandle<T>) -> T {
    let joined = tokio::task::spawn_blocking(|| thread.join().unwrap());
    joined.await.unwrap()
}

/// The request with the content `{}` or without content; empty if the connection was closed.
fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !(bytes.ends_with(b"\r\n\r\n{}") || bytes.starts_with(b"CONNECT") && bytes.ends_with(b"\r\n\r\n")) {
        let mut buffer = [0; 4096];
        match socket.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return String::new(),
        }
    }
    String::from_utf8(bytes).unwrap()
}

async fn post(client: &Client, url: &str) -> Result<(u16, String), Error> {
    post_with(client, url, HeaderMap::new()).await
}

async fn post_with(client: &Client, url: &str, headers: HeaderMap) -> Result<(u16, String), Error> {
    let content = RequestBody::Bytes(Bytes::from_static(b"{}"));
    let mut response = client.post(url, headers, content).await?;
    let mut body = Vec::new();
    while let Some(piece) = response.content.next().await {
        body.extend_from_slice(&piece?);
    }
    Ok((response.status, String::from_utf8(body).unwrap()))
}

#[tokio::test]
async fn connection_is_reused_if_the_response_allows_it() {
    for (answer, content, reused) in COMPLETE {
        let (url, count) = server(String::from(*answer), !reused);
        let client = direct();
        for _ in 0..3 {
            let (_, body) = post(&client, &url).await.unwrap();
            assert_eq!(body, *content, "{answer:?}");
            // The connection returns to the pool after its last byte was read.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let expected = if *reused { 1 } else { 3 };
        assert_eq!(count.load(Ordering::Relaxed), expected, "{answer:?}");
    }
}

#[tokio::test]
async fn broken_response_is_a_network_error() {
    for answer in BROKEN {
        let (url, _) = server(String::from(*answer), true);
        let error = post(&direct(), &url).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Network, "{answer:?}");
        assert!(
            error
                .message
                .starts_with("the connection to the back-end broke: "),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn response_head_is_limited() {
    let long = "v".repeat(ANSWER_HEAD_BYTES_MAX);
    let (url, _) = server(
        format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: {long}\r\n\r\n"),
        true,
    );
    let error = post(&direct(), &url).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Network, "{error:?}");
}

#[tokio::test]
async fn connection_close_is_honoured() {
    let (answer, ..) = COMPLETE[0];
    let (url, count) = server(String::from(answer), false);
    let client = direct();
    for _ in 0..2 {
        let headers = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static("close"))]);
        post_with(&client, &url, headers).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn connection_that_was_closed_while_idle_is_replaced() {
    let (answer, ..) = COMPLETE[0];
    let (url, count) = server(String::from(answer), true);
    let client = direct();
    for round in 1..=3 {
        post(&client, &url).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), round);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn request_that_was_sent_is_not_repeated() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().filter_map(Result::ok) {
            // Answers the first request of a connection, and closes it after it read the second.
            for answer in [COMPLETE[0].0, ""] {
                if !read_request(&mut socket).is_empty() {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                socket.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    let client = direct();
    post(&client, &url).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let error = post(&client, &url).await.unwrap_err();
    assert_eq!(
        (error.kind, error.phase),
        (ErrorKind::Network, Phase::BeforeFirstByte),
        "{error:?}"
    );
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn refusal_is_read_before_the_request_was_sent_completely() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let refusing = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.read_exact(&mut [0; 1024]).unwrap();
        let answer = "HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig";
        socket.write_all(answer.as_bytes()).unwrap();
        // Closing with unread data would reset the connection and discard the response.
        io::copy(&mut socket, &mut io::sink()).ok();
    });
    let content = RequestBody::Bytes(Bytes::from(vec![b'x'; LARGE_BYTES]));
    let mut response = direct().post(&url, HeaderMap::new(), content).await.unwrap();
    assert_eq!(response.status, 413);
    assert_eq!(&response.content.next().await.unwrap().unwrap()[..], b"big");
    drop(response);
    finished(refusing).await;
}

pub(super) const LARGE_BYTES: usize = 32 * 1024 * 1024;

#[tokio::test]
async fn dropping_a_response_closes_its_connection() {
    let (address, served) =
        one_connection("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n");
    let client = direct();
    let content = RequestBody::Bytes(Bytes::from_static(b"{}"));
    let url = format!("http://{address}/");
    let mut response = client.post(&url, HeaderMap::new(), content).await.unwrap();
    assert_eq!(&response.content.next().await.unwrap().unwrap()[..], b"hi");
    drop(response);
    let (_, rest) = finished(served).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let (address, served) = one_connection("");
    let client = direct();
    let url = format!("http://{address}/");
    let waiting = tokio::time::timeout(Duration::from_millis(200), post(&client, &url)).await;
    assert!(waiting.is_err());
    let (request, _) = finished(served).await;
    assert!(request.starts_with("POST / "), "{request}");
}

/// A measurement (docs/benchmarks.md), not a check: memory of the client for each response that is being read.
#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "prints a measurement"]
#[expect(clippy::print_stdout, reason = "the output of a measurement")]
async fn memory_of_open_responses() {
    const COUNT: usize = 400;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut sockets = Vec::new();
        for mut socket in listener.incoming().filter_map(Result::ok) {
            read_request(&mut socket);
            let begun = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n";
            socket.write_all(begun.as_bytes()).unwrap();
            sockets.push(socket);
        }
    });
    let resident_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
    };
    let client = direct();
    let mut open = Vec::with_capacity(2 * COUNT);
    let mut before_kib = 0;
    for number in 0..2 * COUNT {
        // The first half has paid for everything that is not needed again.
        if number == COUNT {
            before_kib = resident_kib();
        }
        let content = RequestBody::Bytes(Bytes::from_static(b"{}"));
        let mut response = client.post(&url, HeaderMap::new(), content).await.unwrap();
        response.content.next().await.unwrap().unwrap();
        open.push(response);
    }
    let used_kib = resident_kib() - before_kib;
    println!("{:.1} KiB for each open response", used_kib as f64 / COUNT as f64);
}

/// The lines of a request head, sorted.
fn head(request: &str) -> Vec<String> {
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<String> = head.split("\r\n").map(String::from).collect();
    lines.sort_unstable();
    lines
}

const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const AGENT: &str = concat!("user-agent: cogn/", env!("CARGO_PKG_VERSION"));

#[tokio::test]
async fn request_head_is_complete() {
    let (address, served) = one_connection(EMPTY);
    let value = HeaderValue::from_static;
    let headers = HeaderMap::from_iter([
        (ACCEPT, value("text/x")),
        // Determined by the body.
        (CONTENT_LENGTH, value("9")),
        (TRANSFER_ENCODING, value("chunked")),
    ]);
    post_with(
        &direct(),
        &format!("http://us%65r:p%40ss@{address}/v1?q=1"),
        headers,
    )
    .await
    .unwrap();
    let (request, _) = finished(served).await;
    let mut expected = vec![
        String::from("POST /v1?q=1 HTTP/1.1"),
        String::from("accept: text/x"),
        // `user:p@ss`.
        String::from("authorization: Basic dXNlcjpwQHNz"),
        String::from("content-length: 2"),
        format!("host: {address}"),
        String::from(AGENT),
    ];
    expected.sort_unstable();
    assert_eq!(head(&request), expected);
}

#[tokio::test]
async fn unusable_requests_are_not_sent() {
    let long = HeaderValue::from_str(&"k".repeat(REQUEST_HEAD_BYTES_MAX)).unwrap();
    let long = HeaderMap::from_iter([(AUTHORIZATION, long)]);
    for (url, headers) in [
        ("http://127.0.0.1:9/", long),
        ("127.0.0.1/x", HeaderMap::new()),
        ("http://ho st/", HeaderMap::new()),
        ("ftp://host/", HeaderMap::new()),
    ] {
        let error = post_with(&direct(), url, headers).await.unwrap_err();
        assert_eq!(
            (error.kind, error.phase),
            (ErrorKind::Network, Phase::BeforeSend),
            "{error:?}"
        );
    }
}

fn through(proxy: &Proxy) -> Client {
    let options = ClientOptions {
        proxy: Some(proxy.clone()),
        ..ClientOptions::default()
    };
    Client::new(&options).unwrap()
}

#[tokio::test]
async fn http_proxy_forwards_plaintext_requests_and_tunnels_tls() {
    let proxy = |address: &str| Proxy {
        http: Some(format!("http://{address}")),
        https: Some(String::from(address)),
        except: String::from("127.0.0.1"),
        credential: Some(SecretString::from("me:s%3A@cret")),
    };
    // `me:s%3A@cret`.
    let credentials = String::from("proxy-authorization: Basic bWU6cyUzQUBjcmV0");

    let (address, served) = one_connection(EMPTY);
    post(&through(&proxy(&address)), "http://back-end.test/v1")
        .await
        .unwrap();
    let (request, _) = finished(served).await;
    let mut expected = vec![
        String::from("POST http://back-end.test/v1 HTTP/1.1"),
        String::from("accept: */*"),
        String::from("content-length: 2"),
        String::from("host: back-end.test"),
        credentials.clone(),
        String::from(AGENT),
    ];
    expected.sort_unstable();
    assert_eq!(head(&request), expected);

    let (address, served) = one_connection("HTTP/1.1 403 Forbidden\r\n\r\n");
    let refused = post(&through(&proxy(&address)), "https://back-end.test/v1").await;
    let refused = refused.unwrap_err();
    assert!(refused.message.starts_with("the proxy refused"), "{refused:?}");
    let (request, _) = finished(served).await;
    assert!(
        request.starts_with("CONNECT back-end.test:443 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.to_lowercase().contains(&credentials.to_lowercase()),
        "{request}"
    );

    // Excepted hosts are reached directly, without the credentials of the proxy.
    let (address, served) = one_connection(EMPTY);
    post(&through(&proxy("127.0.0.1:9")), &format!("http://{address}/"))
        .await
        .unwrap();
    let (request, _) = finished(served).await;
    assert!(request.starts_with("POST / HTTP/1.1\r\n"), "{request}");
    assert!(!request.contains("proxy-authorization"), "{request}");
}

#[test]
fn unusable_proxies_are_rejected() {
    for url in ["ftp://proxy", "http://", "", "http://a b"] {
        let options = ClientOptions {
            proxy: Some(Proxy {
                http: Some(String::from(url)),
                ..Proxy::default()
            }),
            ..ClientOptions::default()
        };
        let error = Client::new(&options).unwrap_err();
        assert!(matches!(error, ClientError::Proxy(_)), "{url}: {error}");
    }
}
