//! Malicious or broken clients. Each is served or refused, none affects other clients, and memory does not
//! grow.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Server, Stage, input, raise_open_files_limit};

const IDLE: usize = 2_000;

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Reads the response until the connection ends; a reset counts as an end.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Resident memory of a process in KiB.
fn memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn open_files(server: &Server) -> usize {
    let files = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    files.count()
}

async fn answers(server: &Server) -> bool {
    let run = server.execute("counter", &input()).send().await;
    run.is_ok_and(|response| response.status() == 200)
}

#[tokio::test]
async fn endless_head_or_body_times_out() {
    let stage = Stage::new();
    stage.configure("[server]\nheader_read_ms = 300\nbody_read_ms = 300\n");
    let server = stage.serve(&[&stage.talker(0)]);
    let mut head = connect(&server);
    head.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        .unwrap();
    let mut body = connect(&server);
    body.write_all(
        b"POST /v1/modules/counter/execute HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{\"te",
    )
    .unwrap();
    // A keep-alive connection that is idle after one request.
    let mut idle = connect(&server);
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    assert!(answers(&server).await);
    rest(head);
    let answer = rest(body);
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("E1001"), "{answer}");
    assert!(rest(idle).starts_with("HTTP/1.1 200"));
    assert!(answers(&server).await);
}

/// The HTTP version is detected from the first bytes, also when they arrive slowly.
#[tokio::test]
async fn http1_and_http2_are_served_without_tls() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let second = reqwest::Client::builder()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    let url = format!("http://{}/healthz", server.address());
    let answer = second.get(url).send().await.unwrap();
    assert_eq!(
        (answer.version(), answer.status().as_u16()),
        (reqwest::Version::HTTP_2, 200)
    );

    // The client's SETTINGS frame is empty; the server replies with its own.
    let second = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let first = b"PUT /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    for pause_after in 1..=4 {
        let mut slow = connect(&server);
        slow.write_all(&second[..pause_after]).unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        slow.write_all(&second[pause_after..]).unwrap();
        let mut frame = [0; 9];
        slow.read_exact(&mut frame).unwrap();
        assert_eq!(frame[3], 4, "no settings: {frame:?}");

        let mut slow = connect(&server);
        slow.write_all(&first[..pause_after]).unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        slow.write_all(&first[pause_after..]).unwrap();
        let answer = rest(slow);
        assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    }
}

#[tokio::test]
async fn endless_headers_are_refused() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let before = memory(&server);
    for line in [
        format!("x-{}: 1\r\n", "a".repeat(8_000)),
        String::from("x-a: 1\r\n"),
    ] {
        let mut stream = connect(&server);
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n")
            .unwrap();
        let mut sent = 0;
        // 64 MiB exceeds every limit; the server closes the connection earlier.
        while sent < 64 * 1024 * 1024 && stream.write_all(line.as_bytes()).is_ok() {
            sent += line.len();
        }
        assert!(sent < 64 * 1024 * 1024, "the server takes headers without end");
    }
    assert!(memory(&server) < before + 50_000, "headers are buffered");
    assert!(answers(&server).await);
}

#[tokio::test]
async fn gigabyte_body_is_refused_without_buffering() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let before = memory(&server);
    // A client that announces the length and waits always receives the response.
    let mut stream = connect(&server);
    let head = "POST /v1/modules/counter/execute HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1073741824";
    write!(stream, "{head}\r\n\r\n").unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    for head in ["content-length: 1073741824", "transfer-encoding: chunked"] {
        let mut stream = connect(&server);
        let request =
            format!("POST /v1/modules/counter/execute HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let piece = if head.starts_with('c') {
            vec![b' '; 1024 * 1024]
        } else {
            let mut chunk = b"100000\r\n".to_vec();
            chunk.extend(vec![b' '; 1024 * 1024]);
            chunk.extend(b"\r\n");
            chunk
        };
        let mut answer = [0; 12];
        let mut reader = stream.try_clone().unwrap();
        let reading = std::thread::spawn(move || reader.read_exact(&mut answer).map(|()| answer));
        let mut pieces = 0;
        while pieces < 1_024 && stream.write_all(&piece).is_ok() {
            pieces += 1;
        }
        assert!(pieces < 1_024, "the whole gigabyte was read");
        // A client that continues to write may lose the response to the reset; it never receives another
        // status.
        if let Ok(answer) = reading.join().unwrap() {
            assert_eq!(&answer, b"HTTP/1.1 413");
        }
    }
    assert!(memory(&server) < before + 100_000, "bodies are buffered");
    assert!(answers(&server).await);
}

#[tokio::test]
async fn json_beyond_depth_limit_is_refused() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    for (open, close) in [("[", "]"), ("{\"input\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        for path in ["/v1/modules/counter/execute", "/run"] {
            let response = server.post(path).body(deep.clone()).send().await.unwrap();
            assert_eq!(response.status(), 400);
            let envelope: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            assert_eq!(envelope["error"]["code"], "E1000");
        }
    }
    assert!(answers(&server).await);
}

#[tokio::test]
async fn idle_connections_do_not_block_other_clients() {
    let stage = Stage::new();
    stage.configure("[server]\nconnections_per_address_max = 2500\nheader_read_ms = 10000\n");
    let server = stage.serve(&[&stage.talker(0)]);
    assert!(answers(&server).await);
    let (before, files_before) = (memory(&server), open_files(&server));
    raise_open_files_limit();
    let mut idle_connections: Vec<TcpStream> = Vec::new();
    while idle_connections.len() < IDLE {
        idle_connections.extend((0..200).map(|_| connect(&server)));
        // Served when all connections before are accepted, so that the backlog never overflows.
        assert!(answers(&server).await);
    }
    // Some send just enough to leave the protocol version undecided.
    for stream in idle_connections.iter_mut().step_by(3) {
        stream.write_all(b"P").unwrap();
    }
    assert!(answers(&server).await);
    let held = open_files(&server) - files_before;
    assert!(held >= IDLE, "only {held} connections are open");
    let each = memory(&server).saturating_sub(before) / 2_000;
    assert!(each < 64, "{each} KiB for each idle connection");
    // All of them are closed, not only those that are polled first.
    for mut stream in idle_connections {
        match stream.read(&mut [0; 1]) {
            Ok(size) => assert_eq!(size, 0, "unexpected output"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    drop(server);
    // Over the limit a connection waits, and is accepted as soon as others are closed.
    stage.configure("[server]\nconnections_max = 3\nconnections_per_address_max = 3\nheader_read_ms = 300\n");
    let server = stage.serve(&[&stage.talker(0)]);
    let idle_connections: Vec<TcpStream> = (0..6).map(|_| connect(&server)).collect();
    assert!(answers(&server).await);
    drop(idle_connections);
}
