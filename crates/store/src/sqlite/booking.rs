//! How bookings get into the tables. A run that was entered since the last time takes one row, whatever else became of
//! it meanwhile. What is there already stays as it is, so a booking that comes twice counts once, and bookings may go
//! in step by step: a step that was done before another failed is done again without harm.

use std::sync::Arc;

use engine::Tenant;
use engine::port::{JournalError, NewRun};
use ir::RunId;
use rusqlite::{Connection, params};

use super::inserts::{InsertEvents, InsertRuns, InsertUsage, Owner, owner};
use super::row::{failed, to_i64};
use super::spool::{Held, Line, Told};
use crate::limits;

/// Bookings on their way, in the order of the trees, so that their rows come one behind the other.
#[derive(Debug)]
pub(super) struct Bookings {
    lines: Arc<[Line]>,
    /// Places of the lines. Those of one run stand together, in the order in which they came.
    order: Vec<usize>,
    done: usize,
}

impl Bookings {
    pub(super) fn new(lines: Arc<[Line]>) -> Self {
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|&place| whose(&lines[place]));
        Self {
            lines,
            order,
            done: 0,
        }
    }

    /// One transaction, which ends early where another write waits. Returns whether all is done.
    pub(super) fn step(
        &mut self,
        connection: &Connection,
        somebody_waits: impl Fn() -> bool,
    ) -> Result<bool, JournalError> {
        let transaction = connection.unchecked_transaction().map_err(failed)?;
        let mut tables = Tables::prepare(connection)?;
        let (mut done, mut rows) = (self.done, 0);
        let same = |one: &usize, other: &usize| whose(&self.lines[*one]) == whose(&self.lines[*other]);
        for places in self.order[done..].chunk_by(same) {
            if rows >= limits::BOOKED_ROWS_TOGETHER && somebody_waits() {
                break;
            }
            let lines = || places.iter().map(|&place| &self.lines[place]);
            let mut told = Told::default();
            lines().for_each(|line| told.add(&line.note));
            if let Some(line) = lines().next() {
                book(connection, &mut tables, whose(line), &told)?;
            }
            done += places.len();
            rows += told.events.len() + 1;
        }
        drop(tables);
        transaction.commit().map_err(failed)?;
        self.done = done;
        Ok(done == self.order.len())
    }
}

fn whose(line: &Line) -> (&Tenant, RunId) {
    (&line.tenant, line.note.run())
}

fn book(
    connection: &Connection,
    tables: &mut Tables<'_>,
    (tenant, run): (&Tenant, RunId),
    told: &Told<'_>,
) -> Result<(), JournalError> {
    let entered = match told.new {
        Some(new) => tables.enter(tenant, new, told)?,
        None => false,
    };
    match entered {
        true => Ok(()),
        false => close(connection, tables, tenant, run, told),
    }
}

/// Brings along what is known of a run, where the tables do not have it yet.
pub(super) fn bring(connection: &Connection, tenant: &Tenant, held: &Held) -> Result<(), JournalError> {
    if let Some(new) = &held.new {
        Tables::prepare(connection)?.enter(tenant, new, &held.told())?;
    }
    Ok(())
}

struct Tables<'c> {
    runs: InsertRuns<'c>,
    events: InsertEvents<'c>,
    usage: InsertUsage<'c>,
}

impl<'c> Tables<'c> {
    fn prepare(connection: &'c Connection) -> Result<Self, JournalError> {
        Ok(Self {
            runs: InsertRuns::prepare(connection)?,
            events: InsertEvents::prepare(connection)?,
            usage: InsertUsage::prepare(connection)?,
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
                module: new.kind.module().unwrap_or_default(),
            };
            self.usage.add(tenant, &id, owner, end)?;
        }
        Ok(true)
    }
}

/// Ends a run that is in the tables and has no events there.
fn close(
    connection: &Connection,
    tables: &mut Tables<'_>,
    tenant: &Tenant,
    run: RunId,
    told: &Told<'_>,
) -> Result<(), JournalError> {
    let Some(end) = told.end else { return Ok(()) };
    let (tenant, id, finish) = (tenant.as_str(), String::from(run), &end.finish);
    let (at_ms, count) = (to_i64(finish.at_ms)?, to_i64(told.events.len() as u64)?);
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
