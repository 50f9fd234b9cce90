//! Clients that mean harm, or are broken enough to look like it. Each is served or refused, none costs
//! others their answers, and memory stays where it was.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Server, Stage, input};

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// All that the server says until it closes; what it closes roughly is as good as closed.
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

async fn answers(server: &Server) -> bool {
    let run = server.execute("counter", &input()).send().await;
    run.is_ok_and(|response| response.status() == 200)
}

#[tokio::test]
async fn a_head_or_a_body_that_never_ends_is_given_up() {
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
    // One that asked once and then says nothing more.
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

/// Which version of HTTP a client speaks is seen from its first bytes, however slowly they come.
#[tokio::test]
async fn both_versions_of_http_are_spoken_without_tls() {
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

    // The client's first frame of settings says nothing; the server's own comes back.
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
async fn headers_without_end_are_refused() {
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
        // 64 MiB would be far beyond any limit; the server hangs up long before.
        while sent < 64 * 1024 * 1024 && stream.write_all(line.as_bytes()).is_ok() {
            sent += line.len();
        }
        assert!(sent < 64 * 1024 * 1024, "the server takes headers without end");
    }
    assert!(memory(&server) < before + 50_000, "headers are kept");
    assert!(answers(&server).await);
}

#[tokio::test]
async fn a_body_of_a_gigabyte_is_refused_without_being_kept() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let before = memory(&server);
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
        assert!(pieces < 1_024, "the whole gigabyte was taken");
        // A client that goes on writing may lose the answer to the reset; it is never another one.
        if let Ok(answer) = reading.join().unwrap() {
            assert_eq!(&answer, b"HTTP/1.1 413");
        }
    }
    assert!(memory(&server) < before + 100_000, "bodies are kept");
    assert!(answers(&server).await);
}

#[tokio::test]
async fn json_deeper_than_any_stack_is_refused() {
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
async fn a_crowd_that_says_nothing_keeps_nobody_out() {
    let stage = Stage::new();
    stage.configure("[server]\nheader_read_ms = 1000\n");
    let server = stage.serve(&[&stage.talker(0)]);
    assert!(answers(&server).await);
    let before = memory(&server);
    let mut crowd: Vec<TcpStream> = (0..700).map(|_| connect(&server)).collect();
    // Some say just enough to be taken for either protocol.
    for stream in crowd.iter_mut().step_by(3) {
        stream.write_all(b"P").unwrap();
    }
    assert!(answers(&server).await);
    let each = memory(&server).saturating_sub(before) / 700;
    assert!(each < 64, "{each} KiB for each idle connection");
    // All of them are closed, not only those that are looked at first.
    for mut stream in crowd {
        match stream.read(&mut [0; 1]) {
            Ok(size) => assert_eq!(size, 0, "something was said"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    drop(server);
    // Over the limit one waits, and gets its turn as soon as others have gone.
    stage.configure("[server]\nconnections_max = 3\nheader_read_ms = 300\n");
    let server = stage.serve(&[&stage.talker(0)]);
    let crowd: Vec<TcpStream> = (0..6).map(|_| connect(&server)).collect();
    assert!(answers(&server).await);
    drop(crowd);
}
