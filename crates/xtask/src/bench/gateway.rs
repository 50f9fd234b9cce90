//! Server benchmarks: the upstream and the load generator on one core, the measured process on another. The
//! same requests are sent directly to the upstream, through the baseline proxy and through cogn, in turn.

use std::path::Path;

use anyhow::{Error, Result};
use serde_json::Value;

use super::process::median;
use super::row::Row;
use super::setup::{Bench, Folder, KEY, ServerProcess, bound, measured, number, resident_kb};

/// 64 tokens, as an envelope of the measured module.
pub(super) const MODEL: &str = "mock-env-t64";
/// Tokens that are slow enough for all streams to be open at once.
const SLOW_MODEL: &str = "mock-env-t64-i150000";
/// Tokens at the pace of a fast model.
const PACED_MODEL: &str = "mock-env-t64-i20000";
/// Limits of the CPU time of a call, in chats of the baseline proxy.
const CHAT_IN_FLOORS_MAX: f64 = 3.5;
const MODULE_IN_FLOORS_MAX: f64 = 5.0;
/// Limit of the first token's latency above the baseline proxy, at one connection.
const FIRST_TOKEN_US_MAX: f64 = 2_000.0;
/// Limit of p99 relative to the baseline proxy, at half of the maximum rate.
const P99_AT_HALF_RATE_MAX: f64 = 3.0;
const MEMORY_PER_STREAM_KIB_MAX: f64 = 48.0;
/// Maximum latency of any response or first token.
const STALL_US_MAX: f64 = 20_000.0;
pub(super) const CHAT: &str = "/v1/chat/completions";
pub(super) const EXECUTE: &str = "/v1/modules/measured/execute";
pub(super) const WHOLE_CHAT: [&str; 6] = ["--mode", "chat", "--model", MODEL, "--key", KEY];
pub(super) const CHAT_STREAM: [&str; 6] = ["--mode", "stream", "--model", MODEL, "--key", KEY];
/// Enough connections to keep the measured process busy.
const MANY: [&str; 2] = ["--connections", "32"];
/// Rounds in which the loads are measured in turn.
const ROUNDS: usize = 9;
const CPU: &str = "/cpu_us_per_request";

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
        let floor = self.floor()?;
        let folder = Folder::new(self.upstream.address(), MODEL)?;
        let server = folder.serve(self.cogn)?;
        let idle_kb = resident_kb(server.pid())?;
        let call = ["--mode", "unary"];
        let busy_call = [&call[..], &MANY].concat();
        let busy_chat = [&WHOLE_CHAT[..], &MANY].concat();
        // Both official clients send a key with every call.
        let busy_client = [&busy_call[..], &["--idempotent"]].concat();
        let busy = self.in_turn([(&floor, CHAT, &busy_chat), (&server, EXECUTE, &busy_call)])?;
        let client = self.in_turn([(&floor, CHAT, &busy_chat), (&server, EXECUTE, &busy_client)])?;
        let alone = self.in_turn([(&floor, CHAT, &WHOLE_CHAT), (&server, EXECUTE, &call)])?;
        let streams = self.in_turn([
            (&floor, CHAT, &CHAT_STREAM),
            (&server, EXECUTE, &["--mode", "execute"]),
            (&server, EXECUTE, &["--mode", "resume"]),
        ])?;
        let whole_us = streams.median(|[_, live, _]| number(live, "/whole_us/p50"))?;
        let mut rows = busy.latency("module, whole, 32 connections", "/whole_us")?;
        rows.extend(self.paced_streams("module stream", &floor, EXECUTE, "execute")?);
        rows.extend([
            busy.cpu_in_floors("module, whole", MODULE_IN_FLOORS_MAX)?,
            client.cpu_in_floors("module, whole, with an idempotency key", MODULE_IN_FLOORS_MAX)?,
            alone.longest("module, whole", |[_, ours]| number(ours, "/whole_us/max"))?,
            self.at_half_rate(
                "module, whole",
                (&floor, &busy_chat),
                (&server, EXECUTE, &busy_call),
            )?,
            bound(
                "module stream: first token, above the baseline proxy",
                streams.median(|[floor, live, _]| first_us_above(live, floor))?,
                "us",
                FIRST_TOKEN_US_MAX,
            ),
            streams.longest("module stream: first token", |[_, live, _]| {
                number(live, "/first_us/max")
            })?,
            // Resuming costs at most as much as reading a second stream of the same length to its end.
            Row {
                name: String::from("module stream: resuming the second half"),
                measured: streams.median(|[.., again]| number(again, "/whole_us/p50"))?,
                baseline: whole_us,
                unit: "us",
                against: String::from("the complete live stream"),
                limit: 1.0,
            },
            bound("idle memory", idle_kb / 1024.0, "MiB", 30.0),
        ]);
        Ok(rows)
    }

    /// 32 streams whose tokens arrive every 20 ms.
    fn paced_streams(&self, what: &str, floor: &ServerProcess, path: &str, mode: &str) -> Result<Vec<Row>> {
        let folder = Folder::new(self.upstream.address(), PACED_MODEL)?;
        let server = folder.serve(self.cogn)?;
        let paced = [
            "--model",
            PACED_MODEL,
            "--key",
            KEY,
            "--warm",
            "1.5",
            "--seconds",
            "4",
        ];
        let load = |mode| [&["--mode", mode][..], &paced, &MANY].concat();
        let direct = self.load(floor, CHAT, &load("stream"))?;
        let ours = self.load(&server, path, &load(mode))?;
        let rounds = Rounds(vec![[direct, ours]]);
        let mut rows = rounds.latency(&format!("{what}, 32 at 20 ms a token: first token"), "/first_us")?;
        rows.extend(rounds.latency(&format!("{what}, 32 at 20 ms a token: between tokens"), "/gap_us")?);
        Ok(rows)
    }

    /// Requests of a vendor's client: the same requests and responses, with one more process in between.
    fn chat(&self) -> Result<Vec<Row>> {
        let floor = self.floor()?;
        let folder = Folder::new(self.upstream.address(), MODEL)?;
        let server = folder.serve(self.cogn)?;
        let busy_chat = [&WHOLE_CHAT[..], &MANY].concat();
        let busy_stream = [&CHAT_STREAM[..], &MANY].concat();
        let busy = self.in_turn([(&floor, CHAT, &busy_chat), (&server, CHAT, &busy_chat)])?;
        let busy_streams = self.in_turn([(&floor, CHAT, &busy_stream), (&server, CHAT, &busy_stream)])?;
        let alone = self.in_turn([(&floor, CHAT, &WHOLE_CHAT), (&server, CHAT, &WHOLE_CHAT)])?;
        let streams = self.in_turn([(&floor, CHAT, &CHAT_STREAM), (&server, CHAT, &CHAT_STREAM)])?;
        let mut rows = busy.latency("chat, 32 connections", "/whole_us")?;
        rows.extend(busy_streams.latency("chat stream, 32 connections: first token", "/first_us")?);
        rows.extend(self.paced_streams("chat stream", &floor, CHAT, "stream")?);
        rows.extend([
            busy.cpu_in_floors("chat", CHAT_IN_FLOORS_MAX)?,
            busy_streams.cpu_in_floors("chat stream", CHAT_IN_FLOORS_MAX)?,
            alone.longest("chat", |[_, ours]| number(ours, "/whole_us/max"))?,
            self.at_half_rate("chat", (&floor, &busy_chat), (&server, CHAT, &busy_chat))?,
            bound(
                "chat stream: first token, above the baseline proxy",
                streams.median(|[floor, live]| first_us_above(live, floor))?,
                "us",
                FIRST_TOKEN_US_MAX,
            ),
            streams.longest("chat stream: first token", |[_, live]| {
                number(live, "/first_us/max")
            })?,
        ]);
        Ok(rows)
    }

    /// Latency under moderate load: p99 of both at half of the maximum rate of the measured server.
    fn at_half_rate(
        &self,
        what: &str,
        (floor, chat): (&ServerProcess, &[&str]),
        (server, path, call): (&ServerProcess, &str, &[&str]),
    ) -> Result<Row> {
        let maximum = number(&self.load(server, path, call)?, "/per_second")?;
        let rate = format!("{:.0}", maximum / 2.0);
        let chat = [chat, &["--rate", &rate]].concat();
        let call = [call, &["--rate", &rate]].concat();
        let rounds = self.in_turn([(floor, CHAT, &chat), (server, path, &call)])?;
        let p99 = |figures: &Value| number(figures, "/whole_us/p99");
        let ratio = rounds.median(|[floor, ours]| Ok(p99(ours)? / p99(floor)?))?;
        let us = rounds.median(|[_, ours]| p99(ours))?;
        Ok(Row {
            name: format!("{what}: p99 at {rate} calls per second, half of the maximum"),
            measured: us,
            baseline: us / ratio,
            unit: "us",
            against: String::from("the baseline proxy at the same rate"),
            limit: P99_AT_HALF_RATE_MAX,
        })
    }

    /// Measures several loads in turn, in rounds, so that noise affects all of them.
    fn in_turn<const N: usize>(&self, loads: [(&ServerProcess, &str, &[&str]); N]) -> Result<Rounds<N>> {
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            // Only the first round starts cold.
            let warm = if round == 0 { "1" } else { "0.2" };
            let mut figures = [const { Value::Null }; N];
            for (figures, (server, path, question)) in figures.iter_mut().zip(&loads) {
                let time = ["--warm", warm, "--seconds", "0.6"];
                *figures = self.load(server, path, &[question, &time[..]].concat())?;
            }
            rounds.push(figures);
        }
        Ok(Rounds(rounds))
    }

    fn floor(&self) -> Result<ServerProcess> {
        let arguments = ["floor", "--upstream", self.upstream.address()];
        ServerProcess::start(self.loadtest, "1", &arguments, None)
    }

    /// Memory per open stream, with this many open at once.
    fn memory(&self, what: &str, path: &str, mode: &str, count: u32) -> Result<Row> {
        let folder = Folder::new(self.upstream.address(), SLOW_MODEL)?;
        let server = folder.serve(self.cogn)?;
        let open = |connections: &str| {
            let once = ["--mode", mode, "--model", SLOW_MODEL, "--once", "--warm", "0"];
            let all = ["--seconds", "9", "--connections", connections];
            self.load(&server, path, &[&once[..], &all].concat())
        };
        // Code pages are loaded once, at first use, and are not counted as memory of a stream.
        open("32")?;
        let before_kb = resident_kb(server.pid())?;
        let open = open(&count.to_string())?;
        let peak_kb = number(&open, "/rss_kb/peak")?;
        Ok(bound(
            &format!("{what}: memory of one of {count} open streams"),
            (peak_kb - before_kb) / f64::from(count),
            "KiB",
            MEMORY_PER_STREAM_KIB_MAX,
        ))
    }
}

/// Results of several loads, by round.
struct Rounds<const N: usize>(Vec<[Value; N]>);

impl<const N: usize> Rounds<N> {
    /// The median over the rounds.
    fn median(&self, figure: impl Fn(&[Value; N]) -> Result<f64>) -> Result<f64> {
        let mut figures: Vec<f64> = self.0.iter().map(figure).collect::<Result<_>>()?;
        Ok(median(&mut figures))
    }

    /// The maximum over the rounds: medians hide stalls.
    fn longest(&self, what: &str, figure: impl Fn(&[Value; N]) -> Result<f64>) -> Result<Row> {
        let mut figures = self.0.iter().map(figure);
        let us = figures.try_fold(0.0, |longest: f64, figure| Ok::<_, Error>(longest.max(figure?)))?;
        let name = format!("{what}, maximum latency of all rounds");
        Ok(bound(&name, us, "us", STALL_US_MAX))
    }
}

/// A baseline and a measured load.
impl Rounds<2> {
    /// Median, p99 and maximum beside those of the baseline proxy under the same load, without a limit.
    fn latency(&self, what: &str, group: &str) -> Result<Vec<Row>> {
        let figure = |figures: &Value, name: &str| number(figures, &format!("{group}/{name}"));
        let row = |name: &str| {
            Ok(Row {
                name: format!("{what}, {name}"),
                measured: self.median(|[_, ours]| figure(ours, name))?,
                baseline: self.median(|[floor, _]| figure(floor, name))?,
                unit: "us",
                against: String::from("the baseline proxy, same load"),
                limit: f64::INFINITY,
            })
        };
        ["p50", "p99", "max"].into_iter().map(row).collect()
    }

    /// CPU time relative to the baseline proxy, so that the speed of the machine cancels out.
    fn cpu_in_floors(&self, what: &str, limit: f64) -> Result<Row> {
        let ratio = self.median(|[floor, ours]| Ok(number(ours, CPU)? / number(floor, CPU)?))?;
        let us = self.median(|[_, ours]| number(ours, CPU))?;
        Ok(Row {
            name: format!("{what}: CPU of one call, in chats of the baseline proxy"),
            measured: us,
            // Median of the ratios of the rounds, which may differ from the ratio of the medians.
            baseline: us / ratio,
            unit: "us",
            against: String::from("the baseline proxy, one chat"),
            limit,
        })
    }
}

fn first_us_above(ours: &Value, baseline: &Value) -> Result<f64> {
    let first_us = |figures| number(figures, "/first_us/p50");
    Ok(first_us(ours)? - first_us(baseline)?)
}
