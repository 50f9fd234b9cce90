//! Seeded chaos test: clients that disconnect at any byte and resume over any transport, back-ends that fail
//! in the middle of a token, servers that are killed, full journals, and clocks that jump by days. At the end
//! the events of the client, the events of the journal and the result of a call without streaming are the
//! same; no event is lost or duplicated, and no run is left open.

mod client;
mod environment;

use std::env;
use std::time::Duration;

use serde_json::{Value, json};

use self::client::Client;
use self::environment::{Dice, Weather};
use crate::harness::{REPLY, Stage, assemble, chunks, data, input};

/// Rounds in `cargo test`; `CHAOS_ROUNDS` overrides it.
const ROUNDS: u64 = 12;
/// Disconnects of one client; after that it reads to the end.
const DROPS_MAX: usize = 6;
/// How often the server recovers a run.
const RECOVERIES_MAX: usize = 2;
const MODULE: &str = "counter";

/// Counts of injected faults; the test fails if one kind of fault never happened.
#[derive(Debug, Default)]
struct Seen {
    kills: usize,
    fulls: usize,
    jumps: usize,
}

async fn round(seed: u64, seen: &mut Seen) {
    let mut dice = Dice(seed);
    let stage = Stage::new();
    let dies_at = dice.throw(REPLY.len() as u64);
    let failing = json!([{"reply": REPLY, "chunk_bytes": 5, "delay_ms": 1, "cut_after_bytes": dies_at}]);
    let failing = stage.script("mortal", &failing);
    let backends = [failing, stage.talker(2)];
    let backends: Vec<&str> = backends.iter().map(String::as_str).collect();
    let mut weather = Weather::of(seed, &stage);
    let mut server = weather.serve(&backends).await;
    let mut client = Client::default();
    let (mut drops, mut kills) = (0, 0);
    while !client.ended {
        let limit = match drops < DROPS_MAX {
            true => usize::try_from(dice.throw(1500)).unwrap(),
            false => usize::MAX,
        };
        let transport = dice.transport();
        seen.jumps += usize::from(weather.jump(&mut dice));
        let visit = client.connect(&server, transport, limit);
        tokio::time::timeout(Duration::from_secs(60), visit)
            .await
            .unwrap_or_else(|_| panic!("seed {seed}: no output over {transport:?}"));
        drops += 1;
        assert!(drops < 100, "seed {seed}: it never ends");
        let full = std::mem::take(&mut client.was_full);
        if full {
            // Without free space the run could never continue.
            weather.make_room();
            seen.fulls += 1;
        }
        // A run is recovered twice.
        let may_kill = !client.ended && kills < RECOVERIES_MAX;
        if full || (may_kill && dice.throw(4) == 0) {
            kills += 1;
            seen.kills += 1;
            server.kill();
            server = weather.serve(&backends).await;
        }
    }
    weather.make_room();
    let held = client.received.join("\n");
    let session = client.session.unwrap();
    let events = server.get(&format!("/v1/runs/{session}/events"));
    let events = events.header("accept", "text/event-stream").send().await.unwrap();
    let journal = events.text().await.unwrap();
    assert_eq!(chunks(&held), chunks(&journal), "seed {seed}");
    let envelope = assemble(&held).envelope;
    assert_eq!(envelope, assemble(&journal).envelope, "seed {seed}");
    // If the journal was full when the run ended, the terminal event reports it.
    let stopped = envelope["error"]["details"]["reason"] == "journal_full";
    let given_up = kills > RECOVERIES_MAX && envelope["error"]["code"] == "E2010";
    assert!(
        stopped || given_up || envelope["data"] == data(),
        "seed {seed}: {envelope}"
    );
    server.kill();
    let server = weather.serve(&backends).await;
    let unstreamed = server.execute(MODULE, &input()).send().await.unwrap();
    let unstreamed: Value = serde_json::from_slice(&unstreamed.bytes().await.unwrap()).unwrap();
    assert_eq!(unstreamed["data"], data(), "seed {seed}");
    let running = server.get("/v1/runs?state=running").send().await.unwrap();
    let running: Value = serde_json::from_slice(&running.bytes().await.unwrap()).unwrap();
    assert_eq!(
        running["data"]["runs"],
        json!([]),
        "seed {seed}: a run has no end"
    );
}

#[tokio::test]
async fn no_event_is_lost_or_duplicated_and_no_run_is_left_open() {
    let asked = env::var_os("CHAOS_ROUNDS");
    let rounds = asked
        .and_then(|rounds| rounds.to_str()?.parse().ok())
        .unwrap_or(ROUNDS);
    let mut seen = Seen::default();
    for seed in 0..rounds {
        round(seed, &mut seen).await;
    }
    assert!(seen.kills > 0 && seen.fulls > 0 && seen.jumps > 0, "{seen:?}");
}
