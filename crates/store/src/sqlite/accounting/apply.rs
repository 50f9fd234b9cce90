//! Carries records into the tables. A record that is applied twice counts once.

use engine::Tenant;
use engine::port::{JournalError, NewRun, RunEnd, RunKind, RunOutcome};
use rusqlite::{Connection, params};

use super::record::Record;
use crate::sqlite::row::{execute, to_i64};
use crate::sqlite::writer::{create, insert_usage};

pub(super) fn apply(connection: &Connection, records: &[Record]) -> Result<(), JournalError> {
    records
        .iter()
        .try_for_each(|record| apply_one(connection, record))
}

fn apply_one(connection: &Connection, record: &Record) -> Result<(), JournalError> {
    match record.clone() {
        Record::Start {
            tenant,
            run,
            command,
            client,
            created_at_ms,
        } => {
            let new = NewRun {
                id: run,
                kind: RunKind::Relay,
                command,
                created_at_ms,
                client,
                once: None,
            };
            match create(connection, &Tenant::new(&tenant), &new) {
                Err(JournalError::Exists(_)) => Ok(()),
                created => created,
            }
        }
        Record::End {
            tenant,
            run,
            code,
            at_ms,
            usage,
        } => {
            let finish = RunOutcome { code, at_ms };
            let id = String::from(run);
            let values = params![tenant, id, finish.state().as_str(), finish.code, to_i64(at_ms)?];
            // A run that has events is ended by its writer.
            if execute(connection, include_str!("../query/close_run.sql"), values)? == 0 {
                return Ok(());
            }
            let end = RunEnd {
                finish,
                review: None,
                usage,
            };
            insert_usage(connection, &tenant, &id, &end)
        }
    }
}
