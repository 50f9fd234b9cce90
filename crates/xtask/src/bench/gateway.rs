//! The server under load: the upstream and the load on one core, whoever stands between them alone on another.
//! The same questions go straight to the upstream, through the floor and through cogn, in one run.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::row::Row;
use super::scene::{Bench, Folder, KEY, Server, bound, measured, number, resident_kb};

/// 64 tokens, in the form of an envelope of the measured module.
const MODEL: &str = "mock-env-t64";
/// Tokens that take long enough for every stream to be open at once.
const SLOW_MODEL: &str = "mock-env-t64-i150000";
/// What the bound on a call's CPU amounts to in chats of the floor: 80 us, on a machine where the floor took 30 to 39.
const CALL_IN_FLOORS_MAX: f64 = 80.0 / 34.5;
const CHAT: &str = "/v1/chat/completions";
const EXECUTE: &str = "/v1/modules/measured/execute";

/// Modules over HTTP.
pub(crate) fn modules(cogn: &Path) -> Result<Vec<Row>> {
    measured(cogn, |bench| {
        let mut rows = bench.modules()?;
        for count in [1_000, 8_000] {
            rows.push(bench.memory("module", EXECUTE, "execute", count)?);
        }
        Ok(rows)
    })
}

/// Vendors' clients.
pub(crate) fn edges(cogn: &Path) -> Result<Vec<Row>> {
    measured(cogn, |bench| {
        let mut rows = bench.chat()?;
        for count in [1_000, 8_000] {
            rows.push(bench.memory("chat", CHAT, "stream", count)?);
        }
        Ok(rows)
    })
}

impl Bench<'_> {
    fn modules(&self) -> Result<Vec<Row>> {
        let stream = ["--mode", "stream", "--model", MODEL, "--key", KEY];
        let direct = self.load(self.upstream, CHAT, &stream)?;
        let floor = self.load(&self.floor()?, CHAT, &stream)?;
        let floor_us = self.floor_us()?;

        let folder = Folder::new(self.upstream.address(), MODEL)?;
        let server = folder.serve(self.cogn)?;
        let idle_kb = resident_kb(server.pid())?;
        let one = self.load(&server, EXECUTE, &["--mode", "execute"])?;
        let many = self.load(&server, EXECUTE, &["--mode", "execute", "--connections", "32"])?;
        let whole = self.load(&server, EXECUTE, &["--mode", "call", "--connections", "32"])?;
        let resumed = self.load(&server, EXECUTE, &["--mode", "resume"])?;
        Ok(vec![
            bound(
                "module, whole: CPU of one call",
                number(&whole, "/cpu_us_per_request")?,
                "us",
                80.0,
            ),
            in_floors("module, whole: CPU of one call, in the floor's", &whole, floor_us)?,
            bound(
                "module stream: CPU of one token",
                number(&many, "/cpu_us_per_token")?,
                "us",
                12.0,
            ),
            bound(
                "module stream: first token, above the floor's",
                first_us(&one)? - first_us(&floor)?,
                "us",
                200.0,
            ),
            bound(
                "module stream: first token, above direct",
                first_us(&one)? - first_us(&direct)?,
                "us",
                500.0,
            ),
            // A second stream of the same length, read to its end, is what coming back may cost.
            Row {
                name: String::from("module stream: the second half again, after it was left"),
                measured: number(&resumed, "/whole_us/p50")?,
                baseline: number(&one, "/whole_us/p50")?,
                unit: "us",
                against: String::from("the whole of it, live"),
                limit: 1.0,
            },
            bound("memory at rest", idle_kb / 1024.0, "MiB", 30.0),
        ])
    }

    /// What a vendor's client sees: the same questions, the same answers, one more process on the way.
    fn chat(&self) -> Result<Vec<Row>> {
        let whole = ["--mode", "chat", "--model", MODEL, "--key", KEY];
        let stream = ["--mode", "stream", "--model", MODEL, "--key", KEY];
        let many = ["--connections", "32"];
        let direct = self.load(self.upstream, CHAT, &whole)?;
        let floor = self.load(&self.floor()?, CHAT, &stream)?;
        let floor_us = self.floor_us()?;
        let folder = Folder::new(self.upstream.address(), MODEL)?;
        let server = folder.serve(self.cogn)?;
        let one = self.load(&server, CHAT, &whole)?;
        let one_stream = self.load(&server, CHAT, &stream)?;
        let busy = self.load(&server, CHAT, &[&whole[..], &many].concat())?;
        let busy_streams = self.load(&server, CHAT, &[&stream[..], &many].concat())?;
        let added = |at: &str| Ok::<_, anyhow::Error>(number(&one, at)? - number(&direct, at)?);
        Ok(vec![
            bound(
                "chat: CPU of one call",
                number(&busy, "/cpu_us_per_request")?,
                "us",
                80.0,
            ),
            in_floors("chat: CPU of one call, in the floor's", &busy, floor_us)?,
            bound("chat: added to direct, p50", added("/whole_us/p50")?, "us", 200.0),
            bound("chat: added to direct, p99", added("/whole_us/p99")?, "us", 400.0),
            bound(
                "chat stream: CPU of one token",
                number(&busy_streams, "/cpu_us_per_token")?,
                "us",
                12.0,
            ),
            bound(
                "chat stream: first token, above the floor's",
                first_us(&one_stream)? - first_us(&floor)?,
                "us",
                200.0,
            ),
        ])
    }

    /// What one chat takes of the floor's core.
    fn floor_us(&self) -> Result<f64> {
        let chat = [
            "--mode",
            "chat",
            "--model",
            MODEL,
            "--key",
            KEY,
            "--connections",
            "32",
        ];
        number(&self.load(&self.floor()?, CHAT, &chat)?, "/cpu_us_per_request")
    }

    fn floor(&self) -> Result<Server> {
        let arguments = ["floor", "--upstream", self.upstream.address()];
        Server::start(self.yardstick, "1", &arguments, None)
    }

    /// What an open stream holds, when so many are open at once.
    fn memory(&self, what: &str, path: &str, mode: &str, count: u32) -> Result<Row> {
        let folder = Folder::new(self.upstream.address(), SLOW_MODEL)?;
        let server = folder.serve(self.cogn)?;
        let before_kb = resident_kb(server.pid())?;
        let connections = count.to_string();
        let once = ["--mode", mode, "--model", SLOW_MODEL, "--once", "--warm", "0"];
        let all = ["--seconds", "9", "--connections", &connections];
        let open = self.load(&server, path, &[&once[..], &all].concat())?;
        let peak_kb = number(&open, "/rss_kb/peak")?;
        Ok(bound(
            &format!("{what}: memory of one of {count} open streams"),
            (peak_kb - before_kb) / f64::from(count),
            "KiB",
            32.0,
        ))
    }
}

fn first_us(figures: &Value) -> Result<f64> {
    number(figures, "/first_us/p50")
}

/// The same figure on any machine: a slower one slows both.
fn in_floors(name: &str, figures: &Value, floor_us: f64) -> Result<Row> {
    Ok(Row {
        name: String::from(name),
        measured: number(figures, "/cpu_us_per_request")?,
        baseline: floor_us,
        unit: "us",
        against: String::from("the floor, one chat"),
        limit: CALL_IN_FLOORS_MAX,
    })
}
