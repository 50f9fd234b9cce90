//! What the recorded child process does with a store, and the check of the files that it left. Each
//! acknowledgement is a line of a file.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use engine::Tenant;
use engine::port::{
    Account, EncodedEvent, EventKind, NewRun, ReviewDecision, ReviewOutcome, RunEnd, RunKind, RunState,
};
use rusqlite::Connection;
use store::{Durability, StoreSettings, StoreUrl, Stores};
use tenancy::{AllowList, Key, NewKey, Scope, Secret};
use testkit::conformance::journal::{new, run};

use super::recorder::{ACKNOWLEDGED, recorded_folder};
use crate::accounting::good;

/// Set in the child process, to its durability.
pub(super) const CHILD: &str = "STORE_CRASH_CHILD";

/// Executes the scenario in the child process; `false` in the parent.
#[expect(clippy::disallowed_methods, reason = "the parent process sets it")]
pub(super) fn play() -> bool {
    let Ok(durability) = std::env::var(CHILD) else {
        return false;
    };
    let durability = match durability.as_str() {
        "Power" => Durability::Power,
        _ => Durability::Process,
    };
    block_on(async {
        let folder = recorded_folder();
        let mut player = Player::new(&folder);
        for session in 0..2 {
            player.session(&folder, durability, session).await;
        }
    });
    true
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work)
}

fn settings(folder: &Path, durability: Durability) -> StoreSettings {
    StoreSettings {
        url: StoreUrl::Sqlite(folder.join("journal.db")),
        bytes_max: None,
        durability,
    }
}

fn key(number: u8) -> Key {
    let new = NewKey {
        name: String::from("k"),
        tenant: Tenant::local(),
        scopes: [Scope::Read].into_iter().collect(),
        modules: AllowList::Any,
        models: AllowList::Any,
        rate: None,
        concurrency: None,
        expires_at_ms: None,
    };
    new.into_key(&Secret::from_random([number; 6], [number; 32]), 1)
}

/// The event of a run at an offset; some are larger than a page.
fn event(run: u8, offset: u64) -> EncodedEvent {
    let bytes = if offset.is_multiple_of(3) { 6_000 } else { 20 };
    let body = format!("{run}-{offset}-{}", "x".repeat(bytes));
    EncodedEvent {
        kind: EventKind::Chunk,
        seq: Some(offset),
        body: body.into(),
    }
}

fn events(run: u8, from: u64, to: u64) -> Vec<EncodedEvent> {
    (from..=to).map(|offset| event(run, offset)).collect()
}

fn relay(number: u8) -> NewRun {
    NewRun {
        kind: RunKind::Relay,
        ..new(run(number.into()))
    }
}

struct Player {
    acknowledged: File,
}

impl Player {
    fn new(folder: &Path) -> Self {
        let mut options = OpenOptions::new();
        let acknowledged = options.create(true).append(true).open(folder.join(ACKNOWLEDGED));
        Self {
            acknowledged: acknowledged.unwrap(),
        }
    }

    fn line(&mut self, line: &str) {
        self.acknowledged
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    /// Acknowledges what succeeded.
    async fn attempt<T, E: Error>(
        &mut self,
        line: &str,
        operation: impl Future<Output = Result<T, E>>,
    ) -> Option<T> {
        match operation.await {
            Ok(value) => {
                self.line(line);
                Some(value)
            }
            Err(error) => {
                let mut text = format!("refused {line}: {error}");
                let mut source = error.source();
                while let Some(error) = source {
                    write!(text, ": {error}").unwrap();
                    source = error.source();
                }
                self.line(&text);
                None
            }
        }
    }

    async fn session(&mut self, folder: &Path, durability: Durability, session: u8) {
        let settings = settings(folder, durability);
        let stores = loop {
            // Only one call fails, so it is opened the second time.
            if let Some(stores) = self.attempt("opened", store::open(&settings)).await {
                break stores;
            }
        };
        let first = session * 100;
        let journal = stores.journal.clone();
        self.attempt("recovered", async { journal.unfinished().await.map(drop) })
            .await;
        self.key_and_run(&stores, first + 1).await;
        self.reviewed_run(&stores, first + 2).await;
        self.calls(&stores, first + 11).await;
        if let Ok(Some(found)) = stores.keys.find(&key(first + 1).id).await {
            let revoked = stores.keys.revoke(&found.id, 5);
            self.attempt(&format!("revoked {}", first + 1), revoked).await;
        }
        if let Ok(connection) = Connection::open(folder.join("journal.db")) {
            let copy = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            copy.ok();
        }
        self.unfinished_run(&stores, first + 4).await;
        drop(self.call(&stores, first + 15).await);
        stores.close().await;
        self.line("stopped");
    }

    /// A key, and a run that ends. What depends on a failed operation is left out.
    async fn key_and_run(&mut self, stores: &Stores, number: u8) {
        self.attempt(&format!("key {number}"), stores.keys.create(&key(number)))
            .await;
        let Some(after) = self.unfinished_run(stores, number).await else {
            return;
        };
        let events = events(number, after + 1, after + 2);
        let end = stores
            .journal
            .finish(&Tenant::local(), run(number.into()), after, &events, &good());
        self.attempt(&format!("run {number} ended {}", after + 2), end)
            .await;
    }

    async fn reviewed_run(&mut self, stores: &Stores, number: u8) {
        let (tenant, id) = (Tenant::local(), run(number.into()));
        let created = stores.journal.create(&tenant, &new(id));
        if self
            .attempt(&format!("run {number} events 0"), created)
            .await
            .is_none()
        {
            return;
        }
        let end = RunEnd {
            review: Some(String::from("why")),
            ..good()
        };
        let end = stores.journal.finish(&tenant, id, 0, &events(number, 1, 1), &end);
        if self
            .attempt(&format!("run {number} ended 1"), end)
            .await
            .is_none()
        {
            return;
        }
        let decision = ReviewDecision {
            decision: ReviewOutcome::Approved,
            by: String::from("b"),
            comment: None,
            data: None,
            at_ms: 7,
        };
        let review = stores.archive.review(&tenant, id, &decision);
        self.attempt(&format!("review {number}"), review).await;
    }

    /// A run with six events in three writes. Returns the offset of the last event.
    async fn unfinished_run(&mut self, stores: &Stores, number: u8) -> Option<u64> {
        let (tenant, id) = (Tenant::local(), run(number.into()));
        let created = stores.journal.create(&tenant, &new(id));
        self.attempt(&format!("run {number} events 0"), created).await?;
        let mut after = 0;
        for _ in 0..3 {
            let written = stores
                .journal
                .append(&tenant, id, after, &events(number, after + 1, after + 2));
            let line = format!("run {number} events {}", after + 2);
            if self.attempt(&line, written).await.is_some() {
                after += 2;
            }
        }
        Some(after)
    }

    /// A relayed call that ends and is read, two that end, and one in progress.
    async fn calls(&mut self, stores: &Stores, first: u8) {
        for number in first..first + 4 {
            let Some(account) = self.call(stores, number).await else {
                continue;
            };
            if number == first + 3 {
                continue;
            }
            account.end(good());
            if number == first {
                let tenant = Tenant::local();
                let read = stores.archive.attempt_usage(&tenant, run(number.into()));
                self.attempt(&format!("call {number} ended"), read).await;
            }
        }
    }

    async fn call(&mut self, stores: &Stores, number: u8) -> Option<Account> {
        let (account, started) = stores
            .journal
            .open_account(&Tenant::local(), &relay(number))
            .unwrap();
        self.attempt(&format!("call {number} started"), started).await?;
        Some(account)
    }
}

/// The lines of the file of acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged(Vec<String>);

impl Acknowledged {
    pub(super) fn parse(text: &str) -> Self {
        Self(text.lines().map(String::from).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keys, revocations and reviews, and everything before the last clean stop.
    pub(super) fn always_synced(self) -> Self {
        let stop = self
            .0
            .iter()
            .rposition(|line| line == "stopped")
            .unwrap_or_default();
        let synced = ["key ", "revoked ", "review "];
        let lines = self
            .0
            .into_iter()
            .enumerate()
            .filter(|(index, line)| *index < stop || synced.iter().any(|start| line.starts_with(start)));
        Self(lines.map(|(_, line)| line).collect())
    }

    pub(super) fn without_stops(&self) -> Self {
        Self(self.0.iter().filter(|line| *line != "stopped").cloned().collect())
    }

    pub(super) fn refusals(&self) -> Vec<&str> {
        let refusals = self.0.iter().filter(|line| line.starts_with("refused "));
        refusals.map(String::as_str).collect()
    }
}

/// Opens the files, and checks that they contain what was acknowledged and nothing inconsistent.
pub(super) fn check(folder: &Path, durability: Durability, acknowledged: &Acknowledged) {
    let lost = missing(folder, durability, acknowledged);
    assert!(lost.is_empty(), "lost: {lost:#?}");
}

/// The acknowledgements that the files do not contain.
pub(super) fn missing(folder: &Path, durability: Durability, acknowledged: &Acknowledged) -> Vec<String> {
    let lost = block_on(async {
        let stores = store::open(&settings(folder, durability)).await.unwrap();
        stores.journal.unfinished().await.unwrap();
        let mut lost = Vec::new();
        for line in &acknowledged.0 {
            if !is_present(&stores, line).await {
                lost.push(line.clone());
            }
        }
        check_consistency(&stores).await;
        // It accepts writes.
        stores.keys.create(&key(250)).await.unwrap();
        stores
            .journal
            .create(&Tenant::local(), &new(run(250)))
            .await
            .unwrap();
        stores.close().await;
        lost
    });
    let database = Connection::open(folder.join("journal.db")).unwrap();
    let intact: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(intact, "ok");
    lost
}

async fn is_present(stores: &Stores, line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let number = || words[1].parse::<u8>().unwrap();
    let (tenant, journal) = (Tenant::local(), &stores.journal);
    let row = async || journal.find(&tenant, run(number().into())).await.unwrap();
    match words[0] {
        "key" => stores.keys.find(&key(number()).id).await.unwrap().is_some(),
        "revoked" => {
            let found = stores.keys.find(&key(number()).id).await.unwrap();
            found.is_some_and(|key| key.revoked_at_ms.is_some())
        }
        "review" => {
            let review = row().await.and_then(|row| row.review);
            review.is_some_and(|review| review.verdict.is_some())
        }
        "run" => {
            let offset: u64 = words[3].parse().unwrap();
            row().await.is_some_and(|row| {
                row.last_offset >= offset && (words[2] != "ended" || row.state == RunState::Done)
            })
        }
        "call" if words[2] == "started" => row().await.is_some(),
        "call" => row().await.is_some_and(|row| row.state == RunState::Done),
        "opened" | "recovered" | "refused" | "stopped" => true,
        other => panic!("{other}"),
    }
}

/// Every run has exactly the events up to its last offset, and usage if and only if it has ended.
async fn check_consistency(stores: &Stores) {
    let tenant = Tenant::local();
    let numbers: BTreeSet<u8> = [0, 100]
        .iter()
        .flat_map(|first| (1..=15).map(move |n| first + n))
        .collect();
    for number in numbers {
        let id = run(number.into());
        let Some(row) = stores.journal.find(&tenant, id).await.unwrap() else {
            continue;
        };
        let read = stores.journal.read(&tenant, id, 0, 1_000).await.unwrap();
        let read: Vec<_> = read.into_iter().map(|entry| entry.event).collect();
        assert_eq!(read, events(number, 1, row.last_offset), "run {number}");
        let usage = stores.archive.attempt_usage(&tenant, id).await.unwrap();
        let expected = usize::from(row.state != RunState::Running);
        assert_eq!(usage.len(), expected, "usage of {number}");
    }
}
