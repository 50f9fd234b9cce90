//! How bookings get into the tables. A run that was entered since the last time takes one row, whatever else became of
//! it meanwhile. What is there already stays as it is, so a booking that comes twice counts once.

use std::collections::BTreeMap;

use engine::Tenant;
use engine::port::{JournalError, NewRun};
use ir::RunId;
use rusqlite::{Connection, params};

use super::calls::{Held, Line, Told};
use super::insert::{Events, Owner, Runs, Usage, owner};
use super::row::integer;
use super::writer::failed;

pub(super) fn book(connection: &Connection, lines: &[Line]) -> Result<(), JournalError> {
    // In the order of the trees, so that their rows come one behind the other.
    let mut told: BTreeMap<(&Tenant, RunId), Told<'_>> = BTreeMap::new();
    for Line { tenant, note } in lines {
        told.entry((tenant, note.run())).or_default().add(note);
    }
    let mut tables = Tables::prepare(connection)?;
    for ((tenant, run), told) in told {
        let entered = match told.new {
            Some(new) => tables.enter(tenant, new, &told)?,
            None => false,
        };
        if !entered {
            close(connection, &mut tables, tenant, run, &told)?;
        }
    }
    Ok(())
}

/// Brings along what is known of a run, where the tables do not have it yet.
pub(super) fn bring(connection: &Connection, tenant: &Tenant, held: &Held) -> Result<(), JournalError> {
    if let Some(new) = &held.new {
        Tables::prepare(connection)?.enter(tenant, new, &held.told())?;
    }
    Ok(())
}

struct Tables<'c> {
    runs: Runs<'c>,
    events: Events<'c>,
    usage: Usage<'c>,
}

impl<'c> Tables<'c> {
    fn prepare(connection: &'c Connection) -> Result<Self, JournalError> {
        Ok(Self {
            runs: Runs::prepare(connection)?,
            events: Events::prepare(connection)?,
            usage: Usage::prepare(connection)?,
        })
    }

    /// Returns whether it was new.
    fn enter(&mut self, tenant: &Tenant, new: &NewRun, told: &Told<'_>) -> Result<bool, JournalError> {
        let id = String::from(new.id);
        if !self.runs.add(tenant, &id, new, told)? {
            return Ok(false);
        }
        let tenant = tenant.as_str();
        self.events.add(tenant, &id, 0, told.events.iter().copied())?;
        if let Some(end) = told.end {
            let owner = Owner {
                client: &new.client,
                module: &new.module,
            };
            self.usage.add(tenant, &id, owner, end)?;
        }
        Ok(true)
    }
}

/// Ends a run that is in the tables and has said nothing there.
fn close(
    connection: &Connection,
    tables: &mut Tables<'_>,
    tenant: &Tenant,
    run: RunId,
    told: &Told<'_>,
) -> Result<(), JournalError> {
    let Some(end) = told.end else { return Ok(()) };
    let (tenant, id, finish) = (tenant.as_str(), String::from(run), &end.finish);
    let (at_ms, count) = (integer(finish.at_ms)?, integer(told.events.len() as u64)?);
    let moved = connection
        .prepare_cached(include_str!("query/close_run.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                tenant,
                id,
                finish.state().as_str(),
                finish.code,
                at_ms,
                count,
                end.review,
            ])
        })
        .map_err(failed)?;
    if moved == 0 {
        return Ok(());
    }
    let (client, module) = owner(connection, tenant, &id)?;
    let owner = Owner {
        client: &client,
        module: &module,
    };
    tables.events.add(tenant, &id, 0, told.events.iter().copied())?;
    tables.usage.add(tenant, &id, owner, end)
}
