//! How bookings get into the tables. A call that was entered and closed since the last time takes one row for
//! both. What is there already stays as it is, so a booking that comes twice counts once.

use std::collections::{HashMap, HashSet};

use engine::Tenant;
use engine::port::{Booking, End, JournalError, NewRun, Rendered, State};
use ir::RunId;
use rusqlite::{Connection, params};

use super::calls::{Line, Note, Opening};
use super::row::integer;
use super::writer::{account, append, failed, insert_event};

/// How a call ended.
#[derive(Clone, Copy)]
pub(super) struct Closed<'l> {
    last: Option<&'l Rendered>,
    end: &'l End,
}

pub(super) fn book(connection: &Connection, lines: &[Line]) -> Result<(), JournalError> {
    let mut closed: HashMap<(&str, RunId), Closed<'_>> = HashMap::new();
    let mut opened = HashSet::new();
    for Line { tenant, note } in lines {
        match note {
            Note::Booked(Booking::Enter(_)) => {}
            // It has a writer, which will end it.
            Note::Opened { run, .. } => {
                opened.insert((tenant.as_str(), *run));
            }
            Note::Booked(Booking::Close { run, last, end }) => {
                let (key, last) = ((tenant.as_str(), *run), last.as_ref());
                if !opened.contains(&key) {
                    // The first word counts.
                    closed.entry(key).or_insert(Closed { last, end });
                }
            }
        }
    }
    for Line { tenant, note } in lines {
        match note {
            Note::Booked(Booking::Enter(new)) => {
                let key = (tenant.as_str(), new.id);
                if enter(connection, tenant, new, closed.get(&key).copied())? {
                    closed.remove(&key);
                }
            }
            Note::Opened { run, events } => say(connection, tenant, *run, events)?,
            Note::Booked(Booking::Close { run, .. }) => {
                if let Some(how) = closed.remove(&(tenant.as_str(), *run)) {
                    close(connection, tenant, *run, how)?;
                }
            }
        }
    }
    Ok(())
}

/// Brings along how a run began, where the tables do not have it yet.
pub(super) fn begin(connection: &Connection, tenant: &Tenant, opening: &Opening) -> Result<(), JournalError> {
    enter(connection, tenant, &opening.new, None)?;
    match &*opening.events {
        [] => Ok(()),
        events => say(connection, tenant, opening.new.id, events),
    }
}

/// The first events of a run. One that has some already, or has ended, has had these.
fn say(
    connection: &Connection,
    tenant: &Tenant,
    run: RunId,
    events: &[Rendered],
) -> Result<(), JournalError> {
    match append(connection, tenant, run, 0, events, None) {
        Err(JournalError::Conflict(_) | JournalError::Ended(_) | JournalError::Unknown(_)) => Ok(()),
        said => said,
    }
}

/// Returns whether it was new.
fn enter(
    connection: &Connection,
    tenant: &Tenant,
    new: &NewRun,
    closed: Option<Closed<'_>>,
) -> Result<bool, JournalError> {
    let id = new.id.to_string();
    let finish = closed.map(|closed| &closed.end.finish);
    let finished_at_ms = finish.map(|finish| integer(finish.at_ms)).transpose()?;
    let created_at_ms = integer(new.created_at_ms)?;
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
                closed.map_or(0, |closed| events(closed.last)),
                new.client,
                closed.and_then(|closed| closed.end.review.as_deref()),
            ])
        })
        .map_err(failed)?;
    if let (1, Some(closed)) = (made, closed) {
        conclude(connection, tenant, &id, closed)?;
    }
    Ok(made == 1)
}

fn close(
    connection: &Connection,
    tenant: &Tenant,
    run: RunId,
    closed: Closed<'_>,
) -> Result<(), JournalError> {
    let (id, finish) = (run.to_string(), &closed.end.finish);
    let at_ms = integer(finish.at_ms)?;
    let moved = connection
        .prepare_cached(include_str!("query/close_run.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                tenant.as_str(),
                id,
                finish.state().as_str(),
                finish.code,
                at_ms,
                events(closed.last),
                closed.end.review,
            ])
        })
        .map_err(failed)?;
    match moved {
        0 => Ok(()),
        _ => conclude(connection, tenant, &id, closed),
    }
}

/// What stands beside the row.
fn conclude(
    connection: &Connection,
    tenant: &Tenant,
    id: &str,
    closed: Closed<'_>,
) -> Result<(), JournalError> {
    if let Some(last) = closed.last {
        insert_event(connection, tenant.as_str(), id, 1, last)?;
    }
    account(
        connection,
        tenant.as_str(),
        id,
        closed.end,
        integer(closed.end.finish.at_ms)?,
    )
}

fn events(last: Option<&Rendered>) -> i64 {
    i64::from(last.is_some())
}
