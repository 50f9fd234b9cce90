//! Clients that open connections and send no request do not lock out others, whatever the limit of open files.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::harness::{Server, Stage, input, raise_open_files_limit};
use crate::keys::key;
use crate::serve_reload::until;

const HALF_OPEN: usize = 1_100;

/// A server that is started with this limit of open files, as an argument of `ulimit`.
fn serve(stage: &Stage, ulimit: &str) -> Server {
    let serving = stage.serving(&["--require-auth"], &[&stage.talker(0)]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {ulimit} && exec \"$@\""), "sh"]);
    command.arg(serving.get_program()).args(serving.get_args());
    if let Some(folder) = serving.get_current_dir() {
        command.current_dir(folder);
    }
    for (name, value) in serving.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.stderr(fs::File::create(stage.path("log")).unwrap());
    Server::spawn(command)
}

/// Connections that have sent a part of a request.
fn half_open(server: &Server) -> Vec<TcpStream> {
    raise_open_files_limit();
    let open = || {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // The server may close it already.
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: lo").ok();
        stream
    };
    (0..HALF_OPEN).map(|_| open()).collect()
}

async fn assert_valid_key_is_served(server: &Server, key: &str) {
    let served = async || {
        let run = server.execute("counter", &input()).bearer_auth(key);
        let response = run.timeout(Duration::from_secs(8)).send().await;
        response.is_ok_and(|response| response.status() == 200)
    };
    // In its first second, a half-open connection is not replaced; clients try again.
    until(served).await;
    for _ in 0..3 {
        assert!(served().await);
    }
}

#[tokio::test]
async fn soft_limit_of_open_files_is_raised() {
    let stage = Stage::new();
    let key = key(&stage, &[]);
    let server = serve(&stage, "-Sn 1024");
    let held = half_open(&server);
    assert_valid_key_is_served(&server, &key).await;
    drop(held);
}

/// Where the limit cannot be raised, fewer connections are accepted, and the oldest ones without a request are
/// closed for new ones.
#[tokio::test]
async fn half_open_connections_within_a_hard_limit_are_replaced() {
    let stage = Stage::new();
    let key = key(&stage, &[]);
    let server = serve(&stage, "-n 1024");
    let held = half_open(&server);
    assert_valid_key_is_served(&server, &key).await;
    let log = fs::read_to_string(stage.path("log")).unwrap();
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(lines("connections_max reduced"), 1, "{log}");
    assert!(
        lines("connection over the limit") + lines("accept failed") <= 3,
        "{log}"
    );
    drop(held);
}
