//! The connection that writes, on a thread of its own. All writes of runs in the queue share one transaction, so
//! that many runs share a commit and a run needs one message to the thread and one back, however many events it
//! appends. Statements stay prepared.
//!
//! A failed transaction is rolled back and its writes are repeated one by one, so that a write fails only for
//! its own reasons. A refusal (duplicate key, second writer) changes nothing and requires no rollback.
//!
//! The queue is limited. A run waits for its last write before the next one, so that only a file that has been
//! slow for long fills it. Writes of runs are refused as by a full disk then, and rare writes wait for a place; neither
//! blocks a thread.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::thread;

use engine::Tenant;
use engine::port::{
    Commit, EncodedEvent, IdempotencyClaim, IdempotencyMatch, JournalError, NewRun, RunEnd, RunState,
};
use ir::RunId;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::database::{Options, connect};
use super::inserts::{InsertEvents, InsertUsage, Owner, owner};
use super::row::{closed, corrupt, failed, in_transaction, kind_columns, select_one, text, to_i64};
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
    /// A rare write: a key, a review, pruning.
    Run(Work),
    Close(oneshot::Sender<()>),
}

impl Job {
    fn run(work: impl FnOnce(&Connection) + Send + 'static) -> Self {
        Self::Run(Work(Box::new(work)))
    }
}

impl Writer {
    pub(super) fn start(path: &Path, options: Options) -> Result<Self, JournalError> {
        let connection = open(path, options).map_err(failed)?;
        let checkpoints = WalCheckpointer::start(path)?;
        let (queue, jobs) = mpsc::channel(limits::WRITE_QUEUE_MAX);
        let thread = WriterThread {
            connection,
            checkpoints,
        };
        thread::Builder::new()
            .name(String::from("journal"))
            .spawn(move || thread.work(jobs))
            .map_err(JournalError::from_backend)?;
        Ok(Self { queue })
    }

    /// Queues a write. It is refused if the queue is full.
    pub(super) fn write(&self, write: WriteOp) -> Commit {
        let (done, answer) = oneshot::channel();
        match self.try_queue(Job::Write { write, done }) {
            Ok(()) => Commit::new(async { answer.await.map_err(|_| closed())? }),
            Err(error) => Commit::ready(Err(error)),
        }
    }

    /// Executes statements in a transaction of their own and returns when it is committed. Waits for a place in
    /// the queue.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        statements: impl FnOnce(&Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (done, answer) = oneshot::channel();
        let job = Job::run(move |connection| {
            // The receiver may be gone.
            done.send(in_transaction(connection, statements)).ok();
        });
        self.queue.send(job).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Queues statements that begin their own transaction. They are refused if the queue is full.
    pub(super) fn queue(&self, work: impl FnOnce(&Connection) + Send + 'static) -> Result<(), JournalError> {
        self.try_queue(Job::run(work))
    }

    fn try_queue(&self, job: Job) -> Result<(), JournalError> {
        self.queue.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => JournalError::Full,
            TrySendError::Closed(_) => closed(),
        })
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

type QueuedWrite = (WriteOp, Done);

struct WriterThread {
    connection: Connection,
    checkpoints: WalCheckpointer,
}

impl WriterThread {
    fn work(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut batch = Vec::new();
        while let Some(job) = jobs.blocking_recv() {
            let mut next = Some(job);
            let mut other = None;
            while let Some(job) = next {
                match job {
                    Job::Write { write, done } => batch.push((write, done)),
                    job => {
                        other = Some(job);
                        break;
                    }
                }
                let has_room = batch.len() < limits::WRITE_BATCH_MAX;
                next = if has_room { jobs.try_recv().ok() } else { None };
            }
            if !batch.is_empty() {
                self.execute_batch(&mut batch);
            }
            match other {
                Some(Job::Run(Work(work))) => work(&self.connection),
                Some(Job::Close(done)) => {
                    jobs.close();
                    // The file is closed before the caller is notified.
                    drop(self);
                    done.send(()).ok();
                    return;
                }
                _ => {}
            }
            self.checkpoints.maybe_checkpoint(&self.connection);
        }
    }

    fn execute_batch(&self, batch: &mut Vec<QueuedWrite>) {
        let results = match write_batch(&self.connection, batch.iter().map(|(write, _)| write)) {
            Ok(results) => results,
            Err(error) if batch.len() == 1 => vec![Err(error)],
            Err(_) => batch
                .iter()
                .map(|(write, _)| write_one(&self.connection, write))
                .collect(),
        };
        for ((_, done), result) in batch.drain(..).zip(results) {
            // The receiver may be gone.
            done.send(result).ok();
        }
    }
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
            after,
            events,
            end,
        } => append(connection, tenant, *run, *after, events, end.as_ref()),
    }
}

pub(super) fn create(connection: &Connection, tenant: &Tenant, run: &NewRun) -> Result<(), JournalError> {
    if let Some(once) = &run.once {
        claim_idempotency_key(connection, tenant, &run.client, once)?;
    }
    let (once, created_at_ms) = (run.once.as_ref(), to_i64(run.created_at_ms)?);
    let (kind, module) = kind_columns(&run.kind);
    let made = connection
        .prepare_cached(include_str!("../query/create_run.sql"))
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
        .prepare_cached(include_str!("../query/release_idempotency_key.sql"))
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
        include_str!("../query/find_by_idempotency_key.sql"),
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
            .prepare_cached(include_str!("../query/update_last_offset.sql"))
            .and_then(|mut statement| statement.execute(params![tenant, id, from, count])),
        Some(end) => {
            let at_ms = to_i64(end.finish.at_ms)?;
            let (state, code) = (end.finish.state().as_str(), end.finish.code.as_deref());
            connection
                .prepare_cached(include_str!("../query/finish_run.sql"))
                .and_then(|mut statement| {
                    statement.execute(params![tenant, id, from, count, state, code, at_ms, end.review])
                })
        }
    };
    if moved.map_err(failed)? == 0 {
        return Err(refusal(connection, tenant, run));
    }
    InsertEvents::prepare(connection)?.add(tenant, &id, from, events)?;
    match end {
        Some(end) => insert_usage(connection, tenant, &id, end),
        None => Ok(()),
    }
}

/// Inserts the usage of a run that is in the tables.
pub(super) fn insert_usage(
    connection: &Connection,
    tenant: &str,
    id: &str,
    end: &RunEnd,
) -> Result<(), JournalError> {
    let (client, module) = owner(connection, tenant, id)?;
    let owner = Owner {
        client: &client,
        module: &module,
    };
    InsertUsage::prepare(connection)?.add(tenant, id, owner, end)
}

/// Why the fenced update matched no row.
fn refusal(connection: &Connection, tenant: &str, run: RunId) -> JournalError {
    let state = connection
        .prepare_cached(include_str!("../query/run_state.sql"))
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
