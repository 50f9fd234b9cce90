//! Bookings of calls on SQLite: they outlive the process that made them, and count once.

use std::path::Path;

use engine::Tenant;
use engine::port::{Archive, Booking, End, Journal, Spent, UsageFilter};
use ir::RunId;
use store::sqlite::SqliteJournal;
use testkit::conformance::journal::{new, run};

fn close(run: RunId) -> Booking {
    let spent = Spent {
        attempt: 1,
        outcome: String::from("won"),
        input_tokens: Some(5),
        output_tokens: Some(7),
        ..Spent::default()
    };
    let end = End::new(None, 9, vec![spent]);
    Booking::Close { run, last: None, end }
}

/// A process that dies: its tasks are gone in the moment in which it has booked.
fn die(path: &Path, bookings: &[Booking]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let journal = runtime.block_on(SqliteJournal::open(path)).unwrap();
    runtime.block_on(async {
        for booking in bookings {
            journal.book(&Tenant::local(), booking.clone()).unwrap();
        }
    });
    drop(runtime);
}

fn logs(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("-calls-")).count()
}

#[tokio::test]
async fn what_a_killed_process_has_booked_is_picked_up_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let bookings = [
        Booking::Enter(new(run(1))),
        close(run(1)),
        Booking::Enter(new(run(2))),
    ];
    std::thread::scope(|scope| scope.spawn(|| die(&path, &bookings)).join().unwrap());
    assert!(logs(folder.path()) > 0);
    // Half a line is what was being written when it died.
    let torn = folder.path().join("journal.db-calls-0-0a");
    std::fs::write(&torn, "+{\"tenant\":\"local\",\"id\":").unwrap();
    let journal = SqliteJournal::open(&path).await.unwrap();
    for _ in 0..2 {
        let unfinished = journal.unfinished().await.unwrap();
        assert_eq!(
            unfinished.iter().map(|(_, row)| row.id).collect::<Vec<_>>(),
            [run(2)]
        );
        let usage = journal.usage(None, &UsageFilter::default()).await.unwrap();
        assert_eq!(usage[0].input_tokens, Some(5));
        assert_eq!(usage[0].runs, 1);
    }
    assert_eq!(logs(folder.path()), 0);
}

#[tokio::test]
async fn what_another_process_still_books_is_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let first = SqliteJournal::open(&path).await.unwrap();
    let second = SqliteJournal::open(&path).await.unwrap();
    first.book(&Tenant::local(), Booking::Enter(new(run(1)))).unwrap();
    second.unfinished().await.unwrap();
    assert_eq!(logs(folder.path()), 2, "they are in use");
    first.book(&Tenant::local(), close(run(1))).unwrap();
    assert!(first.find(&Tenant::local(), run(1)).await.unwrap().is_some());
    assert_eq!(second.spent(&Tenant::local(), run(1)).await.unwrap().len(), 1);
    first.close().await;
    drop(first);
    assert_eq!(logs(folder.path()), 0, "nothing is left behind");
}
