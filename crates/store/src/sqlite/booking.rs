//! How bookings get into the tables. A run that was entered since the last time takes one row, whatever else became of
//! it meanwhile. What is there already stays as it is, so a booking that comes twice counts once.

use std::collections::HashMap;

use engine::Tenant;
use engine::port::{Booking, JournalError, NewRun, State};
use ir::RunId;
use rusqlite::{Connection, params};

use super::calls::{Held, Line, Note, Told};
use super::row::integer;
use super::writer::{account, failed, insert_event};

pub(super) fn book(connection: &Connection, lines: &[Line]) -> Result<(), JournalError> {
    let mut told: HashMap<(&str, RunId), Told<'_>> = HashMap::new();
    for Line { tenant, note } in lines {
        let key = (tenant.as_str(), note.run());
        told.entry(key).or_default().add(note);
    }
    for Line { tenant, note } in lines {
        let key = (tenant.as_str(), note.run());
        match note {
            Note::Booked(Booking::Enter(new)) => {
                let known = told.get(&key).cloned().unwrap_or_default();
                if enter(connection, tenant, new, &known)? {
                    told.remove(&key);
                }
            }
            // What it said stands beside its row, or its writer has brought it along.
            Note::Said { .. } => {}
            Note::Booked(Booking::Close { .. }) => {
                if let Some(how) = told.remove(&key) {
                    close(connection, tenant, key.1, &how)?;
                }
            }
        }
    }
    Ok(())
}

/// Brings along what is known of a run, where the tables do not have it yet.
pub(super) fn bring(connection: &Connection, tenant: &Tenant, held: &Held) -> Result<(), JournalError> {
    if let Some(new) = &held.new {
        enter(connection, tenant, new, &held.told())?;
    }
    Ok(())
}

/// Returns whether it was new.
fn enter(
    connection: &Connection,
    tenant: &Tenant,
    new: &NewRun,
    told: &Told<'_>,
) -> Result<bool, JournalError> {
    let id = new.id.to_string();
    let finish = told.end.map(|end| &end.finish);
    let finished_at_ms = finish.map(|finish| integer(finish.at_ms)).transpose()?;
    let (created_at_ms, count) = (integer(new.created_at_ms)?, integer(told.events.len() as u64)?);
    let made = connection
        .prepare_cached(include_str!("query/enter_run.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                tenant.as_str(),
                id,
                new.module,
                new.command,
                finish.map_or(State::Running, |finish| finish.state()).as_str(),
                finish.and_then(|finish| finish.code.as_deref()),
                created_at_ms,
                finished_at_ms,
                count,
                new.client,
                told.end.and_then(|end| end.review.as_deref()),
            ])
        })
        .map_err(failed)?;
    if made == 1 {
        conclude(connection, tenant, &id, told)?;
    }
    Ok(made == 1)
}

/// Ends a run that is in the tables and has said nothing there.
fn close(connection: &Connection, tenant: &Tenant, run: RunId, told: &Told<'_>) -> Result<(), JournalError> {
    let Some(end) = told.end else { return Ok(()) };
    let (id, finish) = (run.to_string(), &end.finish);
    let (at_ms, count) = (integer(finish.at_ms)?, integer(told.events.len() as u64)?);
    let moved = connection
        .prepare_cached(include_str!("query/close_run.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                tenant.as_str(),
                id,
                finish.state().as_str(),
                finish.code,
                at_ms,
                count,
                end.review,
            ])
        })
        .map_err(failed)?;
    match moved {
        0 => Ok(()),
        _ => conclude(connection, tenant, &id, told),
    }
}

/// What stands beside the row.
fn conclude(connection: &Connection, tenant: &Tenant, id: &str, told: &Told<'_>) -> Result<(), JournalError> {
    for (offset, event) in (1..).zip(&told.events) {
        insert_event(connection, tenant.as_str(), id, offset, event)?;
    }
    match told.end {
        Some(end) => account(connection, tenant.as_str(), id, end, integer(end.finish.at_ms)?),
        None => Ok(()),
    }
}
