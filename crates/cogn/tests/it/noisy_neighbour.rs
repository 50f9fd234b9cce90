//! One key attacks the server in every known way; the calls of another key stay fast, and none is refused.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Client;
use rustix::process::setpriority_process;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::bad_requests::several_models;
use crate::harness::{Server, Stage, input};
use crate::keys::key;
use crate::openai_unary::back_end;

/// Calls of the quiet key in each phase.
const CALLS: usize = 240;
/// Of these at a time.
const CONCURRENT: usize = 4;
/// Most that the attacks may add.
const SLOWDOWN: u32 = 5;
const LONGEST: Duration = Duration::from_secs(2);
/// The calls are disturbed until each attack was answered so often, which takes at most so long.
const ATTACKS: usize = 3;
/// Bodies of this size are sent over HTTP/1.
const LARGE_BYTES: usize = 4 << 20;
const ATTACKS_LONGEST: Duration = Duration::from_secs(15);
/// Between two requests of one attack: the clients run on the same processors as the server.
const ATTACK_PAUSE: Duration = Duration::from_millis(20);

/// An attack: a request that is sent again and again.
struct Attack {
    name: &'static str,
    path: &'static str,
    body: &'static str,
}

fn attack(name: &'static str, path: &'static str, body: String) -> Attack {
    Attack {
        name,
        path,
        // Sent many times, until the process ends.
        body: body.leak(),
    }
}

fn chat(schema: &Value) -> String {
    let format = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}});
    let chat = json!({
        "model": "a", "messages": [{"role": "user", "content": "hi"}],
        "response_format": format, "cogn": {"validate": "check"}
    });
    chat.to_string()
}

/// A chain of references, which is deep, and definitions that use the next one twice, which are many.
fn hostile_schemas() -> [Value; 2] {
    let mut chain = serde_json::Map::new();
    let mut doubled = serde_json::Map::new();
    for number in 0..15_000 {
        let next = format!("#/$defs/d{}", number + 1);
        if number < 30 {
            let twice = json!({"allOf": [{"$ref": next}, {"$ref": next}]});
            doubled.insert(format!("d{number}"), twice);
        }
        chain.insert(format!("d{number}"), json!({"$ref": next}));
    }
    chain.insert(String::from("d15000"), json!({"type": "string"}));
    doubled.insert(String::from("d30"), json!({"type": "string"}));
    [chain, doubled].map(|definitions| json!({"$ref": "#/$defs/d0", "$defs": definitions}))
}

fn attacks() -> Vec<Attack> {
    const CHAT: &str = "/v1/chat/completions";
    const RUN: &str = "/v1/modules/counter/execute";
    let [chain, doubled] = hostile_schemas();
    let mut keys = String::from("{\"model\":\"unknown\",\"messages\":[]");
    for number in 0..64_000 {
        write!(keys, ",\"k{number}\":0").unwrap();
    }
    keys.push('}');
    let dense = |bytes: usize| format!("[{}0]", r#"{"":0},"#.repeat(bytes / 7));
    let text = json!({"input": {"text": 1, "long": "x".repeat(8 << 20)}}).to_string();
    vec![
        attack("schema: chain of references", CHAT, chat(&chain)),
        attack("schema: doubled references", CHAT, chat(&doubled)),
        attack("many keys", CHAT, keys),
        attack("dense body", RUN, dense(1 << 20)),
        attack("dense body above the limit of values", RUN, dense(15 << 20)),
        attack("long text", RUN, text),
        attack("deep nesting", RUN, "[".repeat(100_000)),
        attack("no model", "/v1/canonical", String::from("{}")),
        attack("no model for a module", RUN, json!({"text": "x"}).to_string()),
        attack(
            "unknown model",
            CHAT,
            json!({"model": "unknown", "messages": []}).to_string(),
        ),
    ]
}

/// One call of the quiet key on a new connection, as a client without a pool makes it.
async fn quiet_call(client: &Client, server: &Server, key: &str, number: usize) -> Duration {
    let (path, body) = match number % 2 {
        0 => (
            "/v1/chat/completions",
            json!({"model": "a", "messages": [{"role": "user", "content": "hi"}]}),
        ),
        _ => (
            "/v1/modules/counter/execute",
            json!({"input": input(), "_options": {"model": "a"}}),
        ),
    };
    let request = client.post(format!("{}{path}", server.url)).bearer_auth(key);
    let since = Instant::now();
    let response = request.body(body.to_string()).send().await.expect("an answer");
    let status = response.status();
    let answer = response.text().await.unwrap();
    assert_eq!(status, 200, "{answer}");
    since.elapsed()
}

/// The times of the calls, of which there are more until it is enough.
async fn quiet_calls(server: &Server, key: &str, enough: impl Fn() -> bool) -> Vec<Duration> {
    let client = Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let next = AtomicUsize::new(0);
    let worker = || async {
        let mut times = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= CALLS && enough() {
                return times;
            }
            times.push(quiet_call(&client, server, key, number).await);
        }
    };
    let workers = futures::future::join_all((0..CONCURRENT).map(|_| worker())).await;
    workers.concat()
}

fn p99(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// The attackers have threads of their own, at the lowest priority: elsewhere they would have processors of
/// their own, and what is measured is the server.
fn attackers_runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    builder.on_thread_start(|| {
        setpriority_process(None, 19).unwrap();
    });
    builder.build().unwrap()
}

/// Sends one attack again and again until it is stopped, and counts its requests that ended.
async fn attacker(url: String, key: String, attack: Attack, stop: Arc<AtomicBool>, ended: Arc<AtomicUsize>) {
    // The windows of HTTP/2 would slow down the sender of a large body.
    let client = match attack.body.len() {
        0..LARGE_BYTES => Client::builder().http2_prior_knowledge(),
        _ => Client::builder(),
    };
    let client = client.build().unwrap();
    while !stop.load(Ordering::Relaxed) {
        let request = client.post(format!("{url}{}", attack.path)).bearer_auth(&key);
        // A body that is refused early resets its stream.
        if let Ok(response) = request.body(attack.body).send().await {
            let status = response.status();
            assert!(
                status.is_client_error() || status == 503,
                "{}: {status}",
                attack.name
            );
            ended.fetch_add(1, Ordering::Relaxed);
        }
        tokio::time::sleep(ATTACK_PAUSE).await;
    }
}

/// Connections that never send a whole request.
fn half_open(server: &Server) -> Vec<TcpStream> {
    let open = || {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // The server may close it already.
        stream
            .write_all(b"POST /v1/modules/counter/execute HTTP/1.1\r\nhost: lo")
            .ok();
        stream
    };
    (0..300).map(|_| open()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_of_one_key_do_not_slow_down_another() {
    let stage = Stage::new();
    let (quiet, noisy) = (key(&stage, &[]), key(&stage, &[]));
    let upstream = several_models();
    let config = back_end("vendor", &upstream.url(""), "");
    let config = stage.config(&config);
    let server = stage.serve_with(&["--require-auth", "--config", &config], &[]);
    quiet_calls(&server, &quiet, || true).await;
    let mut undisturbed = quiet_calls(&server, &quiet, || true).await;

    let stop = Arc::new(AtomicBool::new(false));
    let attacking = attackers_runtime();
    let mut attackers = JoinSet::new();
    let mut counts = Vec::new();
    for attack in attacks() {
        let count = Arc::new(AtomicUsize::new(0));
        counts.push((attack.name, count.clone()));
        let attack = attacker(server.url.clone(), noisy.clone(), attack, stop.clone(), count);
        attackers.spawn_on(attack, attacking.handle());
    }
    let held = half_open(&server);
    let since = Instant::now();
    let often = |ended: &AtomicUsize| ended.load(Ordering::Relaxed) >= ATTACKS;
    let every_attack = || counts.iter().all(|(_, ended)| often(ended));
    let enough = || every_attack() || since.elapsed() > ATTACKS_LONGEST;
    let mut disturbed = quiet_calls(&server, &quiet, enough).await;
    assert!(every_attack(), "{counts:?}");
    stop.store(true, Ordering::Relaxed);
    attackers.join_all().await;
    drop(held);
    attacking.shutdown_background();
    // Before and after: other programs may disturb more in one half of the time.
    undisturbed.extend(quiet_calls(&server, &quiet, || true).await);

    let (before, during) = (p99(&mut undisturbed), p99(&mut disturbed));
    let longest = disturbed.last().unwrap();
    assert!(
        during <= before * SLOWDOWN,
        "p99 {during:?}, undisturbed {before:?}"
    );
    assert!(*longest <= LONGEST, "the longest call took {longest:?}");
}
