//! A killed process, a power failure after every recorded call, and failing calls: `docs/reference/durability.md`
//! has one line for each test.
//!
//! A child process, which is this binary, executes [`scenario`] and logs its file operations through
//! `recorder.c`. The files are rebuilt as a crash after each operation leaves them, and opened.

mod disk;
mod recorder;
mod scenario;

use std::collections::BTreeSet;

use store::Durability::{self, Power, Process};

use self::disk::{Crash, Disk};
use self::recorder::{Kind, Operation, Recording, record};
use self::scenario::{Acknowledged, check, play};

/// Operations after which a crash is simulated, in addition to those around syncs.
const CRASHES_MAX: usize = 60;
/// Operations that fail, one in each execution of the scenario.
const FAILURES_MAX: usize = 40;

#[expect(clippy::disallowed_methods, reason = "a setting of this test")]
fn sampled(default: usize) -> usize {
    std::env::var("CRASH_POINTS").map_or(default, |number| number.parse().unwrap())
}

/// The number of operations before each simulated crash: around every sync, around acknowledgements, and others.
fn crash_points(operations: &[Operation]) -> BTreeSet<usize> {
    let all = operations.len();
    let near = operations
        .iter()
        .enumerate()
        .filter(|(_, operation)| operation.kind == Kind::Sync || operation.acknowledges())
        .flat_map(|(index, _)| [index, index + 1]);
    let step = (all / sampled(CRASHES_MAX)).max(1);
    near.chain((0..all).step_by(step)).chain([all]).collect()
}

fn crash_everywhere(durability: Durability, crash: impl Fn(usize) -> Crash, survives: Survives) {
    let recording = Recording::of(durability);
    let points = crash_points(&recording.operations);
    assert!(points.len() > 40, "{} operations", recording.operations.len());
    let mut disk = Disk::default();
    let mut checked = 0;
    for (index, operation) in recording.operations.iter().enumerate() {
        if points.contains(&index) {
            checked += crash_at(&disk, crash(index), durability, survives);
        }
        disk.apply(operation);
    }
    checked += crash_at(&disk, crash(usize::MAX), durability, survives);
    assert!(checked > 200, "only {checked} acknowledgements were checked");
}

/// Which acknowledgements are checked after a crash.
#[derive(Clone, Copy, Debug)]
enum Survives {
    Everything,
    /// Keys, revocations and reviews, and everything before the last clean stop.
    AlwaysSynced,
}

/// Returns the number of acknowledgements that were checked.
fn crash_at(disk: &Disk, crash: Crash, durability: Durability, survives: Survives) -> usize {
    let acknowledged = Acknowledged::parse(&disk.acknowledged());
    let required = match survives {
        Survives::Everything => acknowledged,
        Survives::AlwaysSynced => acknowledged.always_synced(),
    };
    let folder = recorder::temporary_folder();
    disk.write(crash, folder.path());
    check(folder.path(), durability, &required);
    required.len()
}

/// Its name is in [`recorder`], which starts it in the child process.
#[test]
fn killed_process_loses_nothing_acknowledged() {
    if play() {
        return;
    }
    for durability in [Process, Power] {
        crash_everywhere(durability, |_| Crash::Killed, Survives::Everything);
    }
}

#[test]
fn power_failure_with_power_loses_nothing_acknowledged() {
    crash_everywhere(Power, |_| Crash::UnsyncedLost, Survives::Everything);
    crash_everywhere(
        Power,
        |index| Crash::UnsyncedTorn(index as u64),
        Survives::Everything,
    );
}

#[test]
fn power_failure_with_process_keeps_keys_reviews_and_what_a_clean_stop_left() {
    crash_everywhere(Process, |_| Crash::UnsyncedLost, Survives::AlwaysSynced);
    crash_everywhere(
        Process,
        |index| Crash::UnsyncedTorn(index as u64),
        Survives::AlwaysSynced,
    );
}

/// Otherwise the page could promise more.
#[test]
fn power_failure_with_process_loses_unsynced_runs() {
    let recording = Recording::of(Process);
    let mut disk = Disk::default();
    // Stopping syncs everything.
    let stop = recording.operations.iter().position(Operation::is_stop).unwrap();
    let before = &recording.operations[..stop];
    let last = before.iter().rposition(Operation::acknowledges).unwrap();
    before[..=last].iter().for_each(|operation| disk.apply(operation));
    let folder = recorder::temporary_folder();
    disk.write(Crash::UnsyncedLost, folder.path());
    let acknowledged = Acknowledged::parse(&disk.acknowledged());
    let lost = scenario::missing(folder.path(), Process, &acknowledged);
    assert!(lost.iter().any(|line| line.starts_with("run ")), "{lost:?}");
    assert!(lost.iter().any(|line| line.starts_with("call ")), "{lost:?}");
}

#[test]
fn failing_calls_are_reported_and_corrupt_nothing() {
    let no_space = errno::NO_SPACE;
    for (durability, errno) in [
        (Process, no_space),
        (Power, no_space),
        (Process, errno::IO),
        (Power, errno::IO),
    ] {
        let all = Recording::of(durability).fallible();
        let step = (all / sampled(FAILURES_MAX)).max(1);
        let mut reported = 0;
        for fail_at in (1..=all).step_by(step) {
            let recording = record(durability, Some((fail_at, errno)));
            reported += check_failure(&recording, durability, fail_at);
        }
        assert!(
            reported > all / step / 4,
            "{durability:?} {errno}: {reported} reports"
        );
    }
}

/// Returns 1 if the failure was reported to the caller.
fn check_failure(recording: &Recording, durability: Durability, fail_at: usize) -> usize {
    let mut disk = Disk::default();
    recording
        .operations
        .iter()
        .for_each(|operation| disk.apply(operation));
    let acknowledged = Acknowledged::parse(&disk.acknowledged());
    for refusal in acknowledged.refusals() {
        let is_clear = ["full", "disk", "space", "I/O", "output error", "unable to open"]
            .iter()
            .any(|word| refusal.contains(word));
        assert!(is_clear, "call {fail_at}: {refusal}");
    }
    // A stop that failed has synced nothing.
    let without_stops = acknowledged.without_stops();
    for (crash, required) in [
        (Crash::Killed, without_stops.clone()),
        (
            Crash::UnsyncedLost,
            match durability {
                Power => without_stops,
                Process => without_stops.always_synced(),
            },
        ),
    ] {
        let folder = recorder::temporary_folder();
        disk.write(crash, folder.path());
        check(folder.path(), durability, &required);
    }
    usize::from(!acknowledged.refusals().is_empty())
}

/// Numbers on Linux.
mod errno {
    pub(super) const NO_SPACE: i32 = 28;
    pub(super) const IO: i32 = 5;
}
