//! A real browser: the page of the guide, in Chromium, through a proxy that cuts its connections. What the
//! page has collected at the end equals what the journal contains.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;
use tempfile::TempDir;
use testkit::tools;

use crate::examples::root;
use crate::harness::{Server, Stage, assemble, chunks, data};
use crate::keys::{answer, closed, key};

/// Serves the page, receives its result, and forwards everything else to a server. Each event stream is cut
/// after the next number of bytes in the list; streams beyond the list are not cut.
struct GoBetween {
    url: String,
    results: mpsc::Receiver<Value>,
    cut: Arc<AtomicUsize>,
}

impl GoBetween {
    fn new(server: &Server, page: String, cuts: &'static [usize]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, results) = mpsc::channel();
        let (address, cut) = (String::from(server.address()), Arc::new(AtomicUsize::new(0)));
        let count = cut.clone();
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let visit = Visit {
                    address: address.clone(),
                    page: page.clone(),
                    cuts,
                    cut: count.clone(),
                    tell: tell.clone(),
                };
                thread::spawn(move || visit.serve(caller));
            }
        });
        Self { url, results, cut }
    }
}

struct Visit {
    address: String,
    page: String,
    cuts: &'static [usize],
    cut: Arc<AtomicUsize>,
    tell: mpsc::Sender<Value>,
}

impl Visit {
    /// Handles one request, dispatched by its request line.
    fn serve(self, mut caller: TcpStream) {
        let Some((head, body)) = read(&mut caller) else {
            return;
        };
        let line = head.lines().next().unwrap_or_default();
        if line.starts_with("GET /page") {
            let length = self.page.len();
            let headers = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}");
            let text = format!("{headers}\r\nconnection: close\r\n\r\n{}", self.page);
            caller.write_all(text.as_bytes()).ok();
            return;
        }
        if line.starts_with("POST /result") {
            let ok = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            caller.write_all(ok).ok();
            self.tell.send(serde_json::from_slice(&body).unwrap()).ok();
            return;
        }
        let budget = match line.contains("/events") {
            true => self.cuts.get(self.cut.fetch_add(1, Ordering::SeqCst)).copied(),
            false => None,
        };
        let mut server = TcpStream::connect(&self.address).unwrap();
        if head.to_lowercase().contains("upgrade: websocket") {
            server.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
            let (mut from, mut to) = (caller.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pump(&mut from, &mut to, usize::MAX));
            pump(&mut server, &mut caller, usize::MAX);
            return;
        }
        // One request per connection, so that cutting it affects nothing else.
        let plain = head
            .lines()
            .filter(|line| !line.to_lowercase().starts_with("connection:"));
        let head: Vec<&str> = plain.collect();
        let head = format!("{}\r\nconnection: close\r\n\r\n", head.join("\r\n"));
        server.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        pump(&mut server, &mut caller, budget.unwrap_or(usize::MAX));
        caller.shutdown(Shutdown::Both).ok();
    }
}

/// Head and body of a request.
fn read(caller: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(at) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&seen[..at]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse().ok())?
            });
            if seen.len() >= at + 4 + length.unwrap_or(0) {
                return Some((head, seen.split_off(at + 4)));
            }
        }
        let count = caller.read(&mut buffer).ok().filter(|count| *count > 0)?;
        seen.extend_from_slice(&buffer[..count]);
    }
}

/// Copies bytes until the end of the stream or until the byte budget is spent.
fn pump(from: &mut TcpStream, to: &mut TcpStream, mut budget: usize) {
    let mut buffer = [0; 4096];
    while budget > 0 {
        let Some(count) = from.read(&mut buffer).ok().filter(|count| *count > 0) else {
            return;
        };
        let count = count.min(budget);
        budget -= count;
        if to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

struct Browser {
    child: Child,
    _profile: TempDir,
}

impl Browser {
    fn open(url: &str) -> Self {
        tools::require(&[("chromium", "chromium")]);
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self {
            child: command.spawn().unwrap(),
            _profile: profile,
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The JavaScript of the guide, embedded in a test page.
fn page(own: &str) -> String {
    let guide = fs::read_to_string(root().join("docs/guide/browser.md")).unwrap();
    let blocks: Vec<&str> = guide
        .split("\n```js\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .collect();
    assert!(blocks.len() >= 2, "the guide shows no JavaScript");
    format!(
        "<!doctype html><script type=module>\n{}\n\
         const tell = (result) => fetch('/result', {{method: 'POST', body: JSON.stringify(result)}});\n\
         try {{\n{own}\n}} catch (error) {{ tell({{error: String(error)}}); }}\n</script>",
        blocks.join("\n")
    )
}

/// Compares the page's result with the journal.
async fn compare(server: &Server, key: Option<&str>, result: &Value) {
    assert_eq!(result["error"], Value::Null, "{result}");
    let session = result["session"].as_str().unwrap();
    let held: Vec<&str> = result["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let held = held.join("\n");
    let events = server.get(&format!("/v1/runs/{session}/events"));
    let events = match key {
        Some(key) => events.bearer_auth(key),
        None => events,
    };
    let events = events.send().await.unwrap();
    let journal = events.text().await.unwrap();
    assert_eq!(chunks(&held), chunks(&journal), "lost or duplicated");
    let envelope = assemble(&held).envelope;
    assert_eq!(envelope, assemble(&journal).envelope);
    assert_eq!(envelope["data"], data());
}

#[tokio::test]
async fn page_with_tickets_loses_no_events_when_connections_are_cut() {
    let stage = Stage::new();
    let server = closed(&stage, &[&stage.talker(20)]);
    let key = key(&stage, &[]);
    let own = format!(
        "const headers = {{authorization: 'Bearer {key}'}};\n\
         const events = [];\n\
         const session = await begin('counter', {{text: 'two words'}}, headers);\n\
         await follow(session, headers, (event) => events.push(event));\n\
         tell({{session, events}});"
    );
    let between = GoBetween::new(&server, page(&own), &[700, 1100, 900]);
    let _browser = Browser::open(&format!("{}/page", between.url));
    let result = between
        .results
        .recv_timeout(Duration::from_secs(60))
        .expect("a result");
    compare(&server, Some(&key), &result).await;
    assert!(between.cut.load(Ordering::SeqCst) >= 4, "nothing was cut");
}

#[tokio::test]
async fn event_source_of_open_server_reconnects() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(20)]);
    let own = "const events = [];\n\
         const session = await begin('counter', {text: 'two words'}, {});\n\
         const source = new EventSource(`/v1/runs/${session}/events`);\n\
         for (const kind of ['meta', 'chunk', 'progress', 'final'])\n\
           source.addEventListener(kind, (event) => {\n\
             events.push(event.data);\n\
             if (kind === 'final') { source.close(); tell({session, events}); }\n\
           });";
    let between = GoBetween::new(&server, page(own), &[800]);
    let _browser = Browser::open(&format!("{}/page", between.url));
    let result = between
        .results
        .recv_timeout(Duration::from_secs(60))
        .expect("a result");
    compare(&server, None, &result).await;
    assert_eq!(between.cut.load(Ordering::SeqCst), 2, "one cut, one reconnect");
}

#[tokio::test]
async fn page_opens_websocket_with_ticket() {
    let stage = Stage::new();
    let server = closed(&stage, &[&stage.talker(0)]);
    let key = key(&stage, &[]);
    let own = format!(
        "const headers = {{authorization: 'Bearer {key}'}};\n\
         const socket = await openSocket(headers);\n\
         const events = [];\n\
         socket.onmessage = (message) => {{\n\
           const {{type, event}} = JSON.parse(message.data);\n\
           if (type !== 'event') return tell({{error: message.data}});\n\
           events.push(JSON.stringify(event));\n\
           if (event.final) tell({{session: events.map((e) => JSON.parse(e).session_id)[0], events}});\n\
         }};\n\
         socket.send(JSON.stringify({{type: 'execute', id: 'a', module: 'counter', input: {{text: 'two words'}}}}));"
    );
    let between = GoBetween::new(&server, page(&own), &[]);
    let _browser = Browser::open(&format!("{}/page", between.url));
    let result = between
        .results
        .recv_timeout(Duration::from_secs(60))
        .expect("a result");
    compare(&server, Some(&key), &result).await;
    let (status, _) = answer(server.get("/v1/ws")).await;
    assert_eq!(status, 401, "without a ticket nothing opens");
}
