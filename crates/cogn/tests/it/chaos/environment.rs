//! The environment of a server: how full its journal is, and the offset of its clock.

use std::fs;
use std::path::Path;

use serde_json::json;
use testkit::tools;

use super::MODULE;
use super::client::Transport;
use crate::harness::{Server, Stage};

/// Path of libfaketime in Debian.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
/// A journal of this size is full after a few runs.
const JOURNAL_BYTES: usize = 500_000;

/// Deterministic random numbers: the same sequence for the same seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    pub(super) fn transport(&mut self) -> Transport {
        match self.throw(3) {
            0 => Transport::Sse,
            1 => Transport::Ndjson,
            _ => Transport::Socket,
        }
    }
}

pub(super) struct Weather<'a> {
    stage: &'a Stage,
    /// Bytes of the inputs that fill the journal; empty if it has free space.
    fill: Vec<usize>,
    tight: bool,
    /// The clock jumps.
    jumps: bool,
}

impl<'a> Weather<'a> {
    /// Every second seed has a clock that jumps, every third a journal that fills up.
    pub(super) fn of(seed: u64, stage: &'a Stage) -> Self {
        let tight = seed % 3 == 1;
        // The remaining space determines at which point of the run the journal is full.
        let last = [1_000, 4_000, 12_000, 30_000][usize::try_from(seed / 3 % 4).unwrap()];
        let weather = Self {
            stage,
            fill: if tight { vec![60_000, last] } else { Vec::new() },
            tight,
            jumps: seed % 2 == 1,
        };
        weather.set_clock("+0");
        weather
    }

    fn set_clock(&self, offset: &str) {
        // Replaced atomically: a reader never sees a partial file.
        let (path, next) = (self.stage.path("clock"), self.stage.path("clock.next"));
        fs::write(&next, offset).unwrap();
        fs::rename(next, path).unwrap();
    }

    /// Sets the clock up to three days forward or back, in some calls.
    pub(super) fn jump(&self, dice: &mut Dice) -> bool {
        let days = i64::try_from(dice.throw(7)).unwrap() - 3;
        if !self.jumps || days == 0 {
            return false;
        }
        self.set_clock(&format!("{:+}", days * 86_400));
        true
    }

    pub(super) fn make_room(&mut self) {
        self.tight = false;
    }

    pub(super) async fn serve(&mut self, backends: &[&str]) -> Server {
        let most = match self.tight {
            true => format!("bytes_max = {JOURNAL_BYTES}\n"),
            false => String::new(),
        };
        let config = self
            .stage
            .config(&format!("[journal]\nkeep_bytes = 1000000000\n{most}"));
        let mut command = self.stage.serving(&["--config", &config], backends);
        if self.jumps {
            tools::require(&[("faketime", "faketime")]);
            assert!(Path::new(FAKETIME).is_file(), "{FAKETIME} is missing");
            command
                .env("LD_PRELOAD", FAKETIME)
                .env("FAKETIME_TIMESTAMP_FILE", self.stage.path("clock"))
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("FAKETIME_NO_CACHE", "1");
        }
        let server = Server::spawn(command);
        for bytes in std::mem::take(&mut self.fill) {
            fill(&server, bytes).await;
        }
        server
    }
}

/// Executes runs with inputs of this size until the journal is full.
async fn fill(server: &Server, bytes: usize) {
    let input = json!({"text": "x".repeat(bytes)});
    for _ in 0..1_000 {
        let response = server.execute(MODULE, &input).send().await.unwrap();
        if response.status() != 200 {
            let text = response.text().await.unwrap();
            assert!(text.contains("journal_full"), "{text}");
            return;
        }
    }
    panic!("the journal never became full");
}
