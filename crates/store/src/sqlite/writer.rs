//! The connection that writes runs and their events, on a thread of its own. All writes in the queue share
//! one transaction, so that many runs share a commit and a run needs one message to the thread and one back,
//! however many events it appends. Statements stay prepared. Lifecycle records, which delay no run, are
//! written in between, in steps.
//!
//! A failed transaction is rolled back and its writes are repeated one by one, so that a write fails only for
//! its own reasons. A refusal (duplicate key, second writer) changes nothing and requires no rollback.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use engine::Tenant;
use engine::port::{
    EncodedEvent, IdempotencyClaim, IdempotencyMatch, JournalError, NewRun, RunEnd, RunState,
};
use ir::RunId;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot};

use super::booking::{Bookings, bring};
use super::database::{Options, connect};
use super::inserts::{InsertEvents, InsertUsage, Owner, owner};
use super::row::{closed, corrupt, failed, kind_columns, select_one, text, to_i64};
use super::spool::{Held, Line};
use super::wal_checkpoint::{WalCheckpointer, count_pages};
use crate::limits;

/// Capacity of the statement cache: all statements.
const STATEMENTS: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Job>,
}

#[derive(Debug)]
pub(super) enum WriteOp {
    Create {
        tenant: Tenant,
        run: NewRun,
    },
    Append {
        tenant: Tenant,
        run: RunId,
        /// Data of the run that may not be in the tables yet.
        held: Option<Box<Held>>,
        after: u64,
        events: Vec<EncodedEvent>,
        end: Option<RunEnd>,
    },
}

/// Receives the result of a job.
type Done = oneshot::Sender<Result<(), JournalError>>;

struct Work(Box<dyn FnOnce(&Connection) + Send>);

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

#[derive(Debug)]
enum Job {
    Write {
        write: WriteOp,
        done: Done,
    },
    Book {
        lines: Arc<[Line]>,
        done: Done,
    },
    /// A rare write: a key, a review, pruning.
    Run(Work),
    Close(oneshot::Sender<()>),
}

impl Writer {
    pub(super) fn start(path: &Path, options: Options) -> Result<Self, JournalError> {
        let connection = open(path, options).map_err(failed)?;
        let checkpoints = WalCheckpointer::start(path)?;
        let (queue, jobs) = mpsc::channel(limits::WRITES_WAITING_MAX);
        thread::Builder::new()
            .name(String::from("journal"))
            .spawn(move || run(connection, checkpoints, jobs))
            .map_err(JournalError::from_backend)?;
        Ok(Self { queue })
    }

    /// Returns when the write is committed.
    pub(super) async fn write(&self, write: WriteOp) -> Result<(), JournalError> {
        self.submit(|done| Job::Write { write, done }).await
    }

    /// Returns when the lifecycle records are committed or some of them could not be written. Idempotent.
    pub(super) async fn book(&self, lines: Arc<[Line]>) -> Result<(), JournalError> {
        self.submit(|done| Job::Book { lines, done }).await
    }

    /// Executes statements in a transaction of their own and returns when it is committed.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        statements: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (done, answer) = oneshot::channel();
        let work = move |connection: &Connection| {
            // The receiver may be gone.
            done.send(in_transaction(connection, statements)).ok();
        };
        let job = Job::Run(Work(Box::new(work)));
        self.queue.send(job).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    async fn submit(&self, job: impl FnOnce(Done) -> Job) -> Result<(), JournalError> {
        let (done, answer) = oneshot::channel();
        self.queue.send(job(done)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Completes queued jobs; later ones are refused.
    pub(super) async fn close(&self) {
        let (done, answer) = oneshot::channel();
        if self.queue.send(Job::Close(done)).await.is_ok() {
            answer.await.ok();
        }
    }
}

fn open(path: &Path, options: Options) -> rusqlite::Result<Connection> {
    let mut connection = connect(path, limits::WRITER_CACHE_KIB)?;
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    count_pages(&connection)?;
    // An event is added only after its run was found or created in the same transaction, and a discarded run
    // has no events.
    connection.pragma_update(None, "foreign_keys", false)?;
    // States are typed in Rust. A CHECK with a list of strings builds a temporary B-tree for every row.
    connection.pragma_update(None, "ignore_check_constraints", true)?;
    if let Some(pages) = options.pages_max() {
        // Setting it returns the new value.
        connection.pragma_update_and_check(
            None,
            "max_page_count",
            i64::try_from(pages).unwrap_or(i64::MAX),
            |_| Ok(()),
        )?;
    }
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

fn run(connection: Connection, mut checkpoints: WalCheckpointer, mut jobs: mpsc::Receiver<Job>) {
    let mut batch = Vec::new();
    let mut bookings = VecDeque::new();
    let mut works = Vec::new();
    loop {
        let mut next = match bookings.is_empty() {
            true => jobs.blocking_recv(),
            false => jobs.try_recv().ok(),
        };
        if next.is_none() && bookings.is_empty() {
            return;
        }
        let mut close = None;
        while let Some(job) = next {
            match job {
                Job::Write { write, done } => batch.push((write, done)),
                Job::Book { lines, done } => bookings.push_back((Bookings::new(lines), done)),
                Job::Run(work) => works.push(work),
                Job::Close(done) => {
                    close = Some(done);
                    break;
                }
            }
            let room = batch.len() < limits::WRITE_BATCH_MAX;
            next = if room { jobs.try_recv().ok() } else { None };
        }
        if !batch.is_empty() {
            execute_batch(&connection, &mut batch);
        }
        for Work(work) in works.drain(..) {
            work(&connection);
        }
        step(&connection, &mut bookings, || !jobs.is_empty());
        if let Some(close) = close {
            while !bookings.is_empty() {
                step(&connection, &mut bookings, || false);
            }
            jobs.close();
            // The file is closed before the caller is notified.
            drop((checkpoints, connection));
            close.send(()).ok();
            return;
        }
        checkpoints.maybe_checkpoint(&connection);
    }
}

/// Writes lifecycle records until another write waits; at least a few rows.
fn step(connection: &Connection, waiting: &mut VecDeque<(Bookings, Done)>, is_contended: impl Fn() -> bool) {
    let Some((bookings, _)) = waiting.front_mut() else {
        return;
    };
    let ended = match bookings.step(connection, is_contended) {
        Ok(false) => return,
        ended => ended.map(|_| ()),
    };
    if let Some((_, done)) = waiting.pop_front() {
        // The receiver may be gone.
        done.send(ended).ok();
    }
}

type QueuedWrite = (WriteOp, Done);

fn execute_batch(connection: &Connection, batch: &mut Vec<QueuedWrite>) {
    let results = match write_batch(connection, batch.iter().map(|(write, _)| write)) {
        Ok(results) => results,
        Err(error) if batch.len() == 1 => vec![Err(error)],
        Err(_) => batch
            .iter()
            .map(|(write, _)| write_one(connection, write))
            .collect(),
    };
    for ((write, done), result) in batch.drain(..).zip(results) {
        let written = result.is_ok();
        if done.send(result).is_err() && written {
            discard_run(connection, &write);
        }
    }
}

fn in_transaction<T>(
    connection: &Connection,
    statements: impl FnOnce(&Connection) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    // Rolls back on drop.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let result = statements(&transaction)?;
    transaction.commit().map_err(failed)?;
    Ok(result)
}

fn write_one(connection: &Connection, write: &WriteOp) -> Result<(), JournalError> {
    let mut results = write_batch(connection, [write])?;
    results.pop().unwrap_or(Ok(()))
}

/// One transaction. Returns an error if the file fails; refusals are returned per write.
fn write_batch<'w>(
    connection: &Connection,
    writes: impl IntoIterator<Item = &'w WriteOp>,
) -> Result<Vec<Result<(), JournalError>>, JournalError> {
    // Rolls back on drop.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let mut results = Vec::new();
    for write in writes {
        match perform(&transaction, write) {
            Err(error @ (JournalError::Full | JournalError::Storage(_))) => return Err(error),
            result => results.push(result),
        }
    }
    transaction.commit().map_err(failed)?;
    Ok(results)
}

fn perform(connection: &Connection, write: &WriteOp) -> Result<(), JournalError> {
    match write {
        WriteOp::Create { tenant, run } => create(connection, tenant, run),
        WriteOp::Append {
            tenant,
            run,
            held,
            after,
            events,
            end,
        } => {
            if let Some(held) = held {
                bring(connection, tenant, held)?;
            }
            append(connection, tenant, *run, *after, events, end.as_ref())
        }
    }
}

fn create(connection: &Connection, tenant: &Tenant, run: &NewRun) -> Result<(), JournalError> {
    if let Some(once) = &run.once {
        claim_idempotency_key(connection, tenant, &run.client, once)?;
    }
    let (once, created_at_ms) = (run.once.as_ref(), to_i64(run.created_at_ms)?);
    let (kind, module) = kind_columns(&run.kind);
    let made = connection
        .prepare_cached(include_str!("query/create_run.sql"))
        .and_then(|mut statement| {
            statement.execute(params![
                tenant.as_str(),
                String::from(run.id),
                module,
                run.command,
                created_at_ms,
                run.client,
                once.map(|once| &once.key),
                once.map(|once| &once.fingerprint),
                kind,
            ])
        })
        .map_err(failed)?;
    if made == 0 {
        return Err(JournalError::Exists(run.id));
    }
    Ok(())
}

/// Fails if the key belongs to a run within its window.
fn claim_idempotency_key(
    connection: &Connection,
    tenant: &Tenant,
    client: &str,
    once: &IdempotencyClaim,
) -> Result<(), JournalError> {
    let since_ms = to_i64(once.since_ms)?;
    connection
        .prepare_cached(include_str!("query/release_idempotency_key.sql"))
        .and_then(|mut statement| statement.execute(params![tenant.as_str(), client, once.key, since_ms]))
        .map_err(failed)?;
    match idempotency_match(connection, tenant, client, once)? {
        Some(holder) => Err(JournalError::DuplicateKey(holder)),
        None => Ok(()),
    }
}

/// The run that holds an idempotency key.
pub(super) fn idempotency_match(
    connection: &Connection,
    tenant: &Tenant,
    client: &str,
    once: &IdempotencyClaim,
) -> Result<Option<IdempotencyMatch>, JournalError> {
    let values = params![tenant.as_str(), client, once.key, to_i64(once.since_ms)?];
    select_one(
        connection,
        include_str!("query/find_by_idempotency_key.sql"),
        values,
        |row| {
            let (id, fingerprint) = (text(row, "id")?, row.get::<_, Option<String>>("once_fingerprint"));
            Ok(IdempotencyMatch {
                run: id.parse().map_err(|_| corrupt("id", id))?,
                same_request: fingerprint.map_err(failed)?.as_ref() == Some(&once.fingerprint),
            })
        },
    )
}

fn append(
    connection: &Connection,
    tenant: &Tenant,
    run: RunId,
    after: u64,
    events: &[EncodedEvent],
    end: Option<&RunEnd>,
) -> Result<(), JournalError> {
    let (tenant, id) = (tenant.as_str(), String::from(run));
    let (from, count) = (to_i64(after)?, to_i64(events.len() as u64)?);
    let moved = match end {
        None => connection
            .prepare_cached(include_str!("query/update_last_offset.sql"))
            .and_then(|mut statement| statement.execute(params![tenant, id, from, count])),
        Some(end) => {
            let at_ms = to_i64(end.finish.at_ms)?;
            let (state, code) = (end.finish.state().as_str(), end.finish.code.as_deref());
            connection
                .prepare_cached(include_str!("query/finish_run.sql"))
                .and_then(|mut statement| {
                    statement.execute(params![tenant, id, from, count, state, code, at_ms, end.review])
                })
        }
    };
    if moved.map_err(failed)? == 0 {
        return Err(refusal(connection, tenant, run));
    }
    InsertEvents::prepare(connection)?.add(tenant, &id, from, events)?;
    let Some(end) = end else { return Ok(()) };
    let (client, module) = owner(connection, tenant, &id)?;
    let owner = Owner {
        client: &client,
        module: &module,
    };
    InsertUsage::prepare(connection)?.add(tenant, &id, owner, end)
}

/// Why the fenced update matched no row.
fn refusal(connection: &Connection, tenant: &str, run: RunId) -> JournalError {
    let state = connection
        .prepare_cached(include_str!("query/run_state.sql"))
        .and_then(|mut statement| {
            let found =
                statement.query_row(params![tenant, String::from(run)], |row| row.get::<_, String>(0));
            found.optional()
        });
    match state {
        Err(error) => failed(error),
        Ok(None) => JournalError::Unknown(run),
        Ok(Some(state)) if state != RunState::Running.as_str() => JournalError::Ended(run),
        Ok(Some(_)) => JournalError::Fenced(run),
    }
}

/// The requester of a run disconnected before it was created, so it will never run.
fn discard_run(connection: &Connection, write: &WriteOp) {
    if let WriteOp::Create { tenant, run } = write {
        // A run that cannot be deleted is found unfinished by the next server and closed there.
        connection
            .prepare_cached(include_str!("query/delete_run.sql"))
            .and_then(|mut statement| statement.execute(params![tenant.as_str(), String::from(run.id)]))
            .ok();
    }
}
