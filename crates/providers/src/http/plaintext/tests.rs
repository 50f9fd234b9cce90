//! Answers in all framings and all pieces, against what the layered client reads of the very same bytes; and what
//! becomes of connections.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::reading::Reading;
use super::{Address, Broken, Plain};
use crate::http::client::AGENT;
use crate::limits::REQUEST_HEAD_BYTES_MAX;

/// Answers that are whole, with their content, and whether the connection can be asked again.
const ANSWERS: &[(&str, &str, bool)] = &[
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
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
        "hi",
        true,
    ),
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

/// Answers that end too early, or are none.
const SPOILT: &[&str] = &[
    "",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfive\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nhello",
    "SSH-2.0-nothing\r\n\r\n",
];

fn reading() -> Reading {
    Reading::new().unwrap()
}

type Outcome = Result<(u16, Vec<u8>, bool), ()>;

/// What is read when the bytes come in these pieces, and the connection is closed behind them.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut reading = reading();
    let (mut status, mut content, mut surplus) = (None, Vec::new(), false);
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        let mut piece = piece;
        if status.is_none() {
            let Some(head) = reading.head(piece).map_err(drop)? else {
                continue;
            };
            status = Some(head.status);
            piece = &[];
        }
        if !reading.has_ended() {
            content.extend_from_slice(&reading.content(piece).map_err(drop)?);
        } else {
            // The pool checks for surplus bytes before reuse.
            surplus |= !piece.is_empty();
        }
    }
    let reusable = reading.is_reusable() && !surplus;
    reading.close().map_err(drop)?;
    Ok((status.ok_or(())?, content, reusable))
}

#[test]
fn an_answer_reads_the_same_in_whatever_pieces_it_comes() {
    let whole = ANSWERS
        .iter()
        .map(|(bytes, content, again)| (*bytes, Some((*content, *again))));
    for (bytes, expected) in whole.chain(SPOILT.iter().map(|bytes| (*bytes, None))) {
        let bytes = bytes.as_bytes();
        let at_once = read([bytes]);
        assert_eq!(at_once.is_ok(), expected.is_some(), "{bytes:?}");
        if let (Ok((_, content, again)), Some(expected)) = (&at_once, expected) {
            assert_eq!((str::from_utf8(content).unwrap(), *again), expected);
        }
        assert_eq!(read(bytes.chunks(1)), at_once, "byte by byte: {bytes:?}");
        for cut in 0..bytes.len() {
            let (before, behind) = bytes.split_at(cut);
            assert_eq!(read([before, behind]), at_once, "cut at {cut}: {bytes:?}");
        }
    }
}

/// Whatever a server sends, cutting it changes nothing but how far an answer came before it was found spoilt.
#[test]
fn fuzz_answers() {
    bolero::check!()
        .with_type::<(Vec<u8>, u8, u8)>()
        .for_each(|(bytes, start, cut)| {
            let (start, _, _) = ANSWERS[usize::from(*start) % ANSWERS.len()];
            let bytes = [start.as_bytes(), bytes].concat();
            let mut changed = bytes.clone();
            let at = usize::from(*cut) % changed.len();
            changed[at] = *cut;
            for bytes in [bytes, changed] {
                let (before, behind) = bytes.split_at(usize::from(*cut) % bytes.len());
                assert_eq!(read([before, behind]), read([bytes.as_slice()]));
            }
        });
}

/// A server that says the same to everyone, and closes the connection or waits for the next question.
fn server(answer: &'static str, close: bool) -> (String, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/chat", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().filter_map(Result::ok) {
            counted.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || {
                while heard(&mut socket) && socket.write_all(answer.as_bytes()).is_ok() && !close {}
            });
        }
    });
    (url, count)
}

/// Reads one request with the content `{}`. `false`: the connection was closed.
fn heard(socket: &mut impl Read) -> bool {
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n\r\n{}") {
        let mut room = [0; 4096];
        match socket.read(&mut room) {
            Ok(count) if count > 0 => heard.extend_from_slice(&room[..count]),
            _ => return false,
        }
    }
    true
}

async fn ask(client: &Plain, url: &str) -> Result<(u16, Vec<u8>), Broken> {
    ask_with(client, url, &HeaderMap::new()).await
}

async fn ask_with(client: &Plain, url: &str, headers: &HeaderMap) -> Result<(u16, Vec<u8>), Broken> {
    let address = Address::of(url).unwrap();
    let content = Bytes::from_static(b"{}");
    let (head, mut body) = client.post(&address, headers, &content).await?;
    let mut content = Vec::new();
    while let Some(piece) = body.next().await {
        content.extend_from_slice(&piece?);
    }
    Ok((head.status, content))
}

#[tokio::test]
async fn the_layered_client_reads_the_same() {
    let layered = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let answers = ANSWERS.iter().map(|(answer, ..)| *answer);
    for answer in answers.chain(SPOILT.iter().copied()) {
        let (url, _) = server(answer, true);
        let ours = ask(&Plain::default(), &url).await.ok();
        let theirs = async {
            let response = layered.post(&url).body("{}").send().await.ok()?;
            let status = response.status().as_u16();
            Some((status, response.bytes().await.ok()?.to_vec()))
        };
        assert_eq!(ours, theirs.await, "{answer:?}");
    }
}

#[tokio::test]
async fn a_connection_is_asked_again_if_its_answer_allows_it() {
    for (answer, _, again) in ANSWERS {
        let (url, count) = server(answer, !again);
        let client = Plain::default();
        for _ in 0..3 {
            ask(&client, &url).await.unwrap();
        }
        let expected = if *again { 1 } else { 3 };
        assert_eq!(count.load(Ordering::Relaxed), expected, "{answer:?}");
    }
}

#[tokio::test]
async fn connection_close_is_honoured() {
    let (answer, ..) = ANSWERS[0];
    let (url, count) = server(answer, false);
    let client = Plain::default();
    let headers = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static("close"))]);
    for _ in 0..2 {
        ask_with(&client, &url, &headers).await.unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_server_that_hung_up_meanwhile_is_asked_anew() {
    let (answer, ..) = ANSWERS[0];
    let (url, count) = server(answer, true);
    let client = Plain::default();
    for round in 1..=3 {
        ask(&client, &url).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), round);
        // Until its last word has arrived.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_refusal_is_read_although_the_question_was_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let refusing = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let answer = "HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig";
        socket.write_all(answer.as_bytes()).await.unwrap();
        // Closing with unread data would reset the connection and discard the response.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    };
    let client = Plain::default();
    let asking = async {
        let content = Bytes::from(vec![b'x'; 32 * 1024 * 1024]);
        let address = Address::of(&url).unwrap();
        let (head, mut body) = client.post(&address, &HeaderMap::new(), &content).await.unwrap();
        assert_eq!(head.status, 413);
        assert_eq!(&body.next().await.unwrap().unwrap()[..], b"big");
        assert!(body.next().await.is_none());
        assert!(
            client.pool.take(&address.host).is_none(),
            "half a question stands on it"
        );
    };
    tokio::join!(refusing, asking);
}

#[tokio::test]
async fn dropping_an_answer_hangs_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        assert!(heard(&mut socket));
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        socket.read(&mut [0; 16]).unwrap()
    });
    let client = Plain::default();
    let address = Address::of(&url).unwrap();
    let content = Bytes::from_static(b"{}");
    let (_, mut body) = client.post(&address, &HeaderMap::new(), &content).await.unwrap();
    assert_eq!(&body.next().await.unwrap().unwrap()[..], b"hi");
    drop(body);
    assert_eq!(answering.join().unwrap(), 0);
}

#[test]
fn only_what_needs_neither_tls_nor_a_name_goes_this_way() {
    for url in [
        "http://127.0.0.1:8080/v1",
        "http://host/v1?a=b",
        "http://[::1]:80/",
    ] {
        assert!(Address::of(url).is_some(), "{url}");
    }
    for url in [
        "https://host/",
        "http://user:secret@host/",
        "http:///x",
        "host/x",
        "ftp://host/",
        "http://ho st/",
    ] {
        assert!(Address::of(url).is_none(), "{url}");
    }
}

#[test]
fn a_question_is_asked_as_it_should_be() {
    let key = "k".repeat(5_000);
    let sure = |text: &str| HeaderValue::from_str(text).unwrap();
    let own = HeaderMap::from_iter([
        (AUTHORIZATION, sure(&key)),
        (ACCEPT, sure("text/x")),
        // Not the caller's to say.
        (CONTENT_LENGTH, sure("9")),
        (TRANSFER_ENCODING, sure("chunked")),
    ]);
    let named = HeaderMap::from_iter([(HOST, sure("other"))]);
    let agent = format!("user-agent: {AGENT}");
    for (url, headers, line, lines) in [
        (
            "http://host:81/v1?q=1",
            &own,
            "/v1?q=1",
            &["host: host:81", "accept: text/x", &agent][..],
        ),
        (
            "http://host:80/a",
            &HeaderMap::new(),
            "/a",
            &["host: host", "accept: */*", &agent],
        ),
        (
            "http://[::1]:81?q",
            &named,
            "/?q",
            &["host: other", "accept: */*", &agent],
        ),
    ] {
        let text = Address::of(url).unwrap().question(headers, b"{}").unwrap();
        let text = String::from_utf8(text).unwrap();
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(content, "{}");
        let mut heard: Vec<&str> = head.split("\r\n").collect();
        assert_eq!(heard.remove(0), format!("POST {line} HTTP/1.1"));
        heard.sort_unstable();
        let key = headers
            .get(AUTHORIZATION)
            .map(|_| format!("authorization: {key}"));
        let mut wanted = [lines, &["content-length: 2"]].concat();
        wanted.extend(key.as_deref());
        wanted.sort_unstable();
        assert_eq!(heard, wanted, "{url}");
    }
}

#[test]
fn a_head_that_is_too_large_is_not_sent() {
    let address = Address::of("http://host/").unwrap();
    let long = HeaderValue::from_str(&"k".repeat(REQUEST_HEAD_BYTES_MAX)).unwrap();
    let headers = HeaderMap::from_iter([(AUTHORIZATION, long)]);
    let refused = address.question(&headers, b"{}");
    assert!(matches!(refused, Err(Broken::LargeHead)), "{refused:?}");
}
