//! A row that cannot be read is moved away; the others are recovered.

use engine::Tenant;
use engine::port::{Journal, JournalError, NewRun, RunKind};
use ir::RunId;
use rusqlite::Connection;
use store::sqlite::SqliteJournal;

fn new(number: u128) -> NewRun {
    NewRun {
        id: RunId::from_parts(1, number),
        kind: RunKind::Module(String::from("m")),
        command: String::from("{}"),
        created_at_ms: 1,
        client: String::from("c"),
        once: None,
    }
}

#[tokio::test]
async fn damaged_rows_do_not_prevent_recovery_of_the_others() {
    // What damage does to a row: an unknown kind, a time before the epoch, bytes that are no text, a broken id.
    let damages = [
        "UPDATE run SET kind = 'nonsense' WHERE id = ?1",
        "UPDATE run SET created_at_ms = -5 WHERE id = ?1",
        "UPDATE run SET client = CAST(x'ff80' AS TEXT) WHERE id = ?1",
        "UPDATE run SET kind = CAST(x'ff80' AS TEXT) WHERE id = ?1",
        "UPDATE run SET id = 'no id' WHERE id = ?1",
        "UPDATE run SET tenant = CAST(x'ff80' AS TEXT) WHERE id = ?1",
    ];
    let folder = tempfile::tempdir().unwrap();
    for (case, damage) in damages.iter().enumerate() {
        let path = folder.path().join(format!("{case}.db"));
        let journal = SqliteJournal::open(&path).await.unwrap();
        for number in 1..=3 {
            journal.create(&Tenant::local(), &new(number)).await.unwrap();
        }
        let file = Connection::open(&path).unwrap();
        let changed = file.execute(damage, [new(2).id.to_string()]).unwrap();
        assert_eq!(changed, 1, "{damage}");
        for _ in 0..2 {
            let unfinished = journal.unfinished().await.unwrap();
            let ids: Vec<RunId> = unfinished.iter().map(|(_, row)| row.id).collect();
            assert_eq!(ids, [new(1).id, new(3).id], "{damage}");
        }
        let text = "SELECT count(*), min(reason), min(content) FROM damaged_run";
        let (count, reason, content) = file
            .query_row(text, [], |row| {
                let content = row.get_ref(2)?.as_bytes()?.to_vec();
                Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?, content))
            })
            .unwrap();
        assert_eq!(count, 1, "{damage}");
        assert!(!reason.is_empty());
        let content = String::from_utf8_lossy(&content);
        assert!(content.contains("\"command\""), "{content}");
        let gone = journal.count_recovery(&Tenant::local(), new(2).id).await;
        if case < 4 {
            assert!(matches!(gone, Err(JournalError::Unknown(_))), "{gone:?}");
        }
        journal.close().await;
    }
}
