//! Conversion between rows and values, and mapping of SQLite errors.

use engine::Tenant;
use engine::port::{
    JournalError, Review, ReviewDecision, ReviewOutcome, RunKind, RunOutcome, RunRecord, RunState,
};
use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, Params, Row};

pub(super) fn failed(error: rusqlite::Error) -> JournalError {
    match error.sqlite_error_code() {
        // The disk is full, or the operator's limit is reached.
        Some(ErrorCode::DiskFull) => JournalError::Full,
        _ => JournalError::from_backend(error),
    }
}

pub(super) fn closed() -> JournalError {
    JournalError::from_backend("the journal is closed")
}

/// The converted rows of a query.
pub(super) fn select<T>(
    connection: &Connection,
    text: &str,
    values: impl Params,
    convert: impl Fn(&Row<'_>) -> Result<T, JournalError>,
) -> Result<Vec<T>, JournalError> {
    let mut statement = connection.prepare_cached(text).map_err(failed)?;
    let mut rows = statement.query(values).map_err(failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        found.push(convert(row)?);
    }
    Ok(found)
}

/// The same for a query that returns at most one row.
pub(super) fn select_one<T>(
    connection: &Connection,
    text: &str,
    values: impl Params,
    convert: impl Fn(&Row<'_>) -> Result<T, JournalError>,
) -> Result<Option<T>, JournalError> {
    Ok(select(connection, text, values, convert)?.pop())
}

/// Commits the statements if they succeed.
pub(super) fn in_transaction<T>(
    connection: &Connection,
    statements: impl FnOnce(&Connection) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    // Rolls back on drop.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let result = statements(&transaction)?;
    transaction.commit().map_err(failed)?;
    Ok(result)
}

/// Executes a statement; returns how many rows it changed.
pub(super) fn execute(
    connection: &Connection,
    text: &str,
    values: impl Params,
) -> Result<usize, JournalError> {
    let mut statement = connection.prepare_cached(text).map_err(failed)?;
    statement.execute(values).map_err(failed)
}

pub(super) fn run_row(row: &Row<'_>) -> Result<(Tenant, RunRecord), JournalError> {
    let id = text(row, "id")?;
    let state = text(row, "state")?;
    let code: Option<String> = get(row, "code")?;
    let finished_at_ms: Option<i64> = get(row, "finished_at_ms")?;
    let finished = match finished_at_ms {
        Some(at_ms) => Some(RunOutcome {
            code,
            at_ms: to_u64(at_ms)?,
        }),
        None => None,
    };
    let found = RunRecord {
        id: id.parse().map_err(|_| corrupt("id", id))?,
        kind: kind(row)?,
        client: get(row, "client")?,
        command: get(row, "command")?,
        state: RunState::find(state).ok_or_else(|| corrupt("state", state))?,
        created_at_ms: to_u64(get(row, "created_at_ms")?)?,
        finished,
        review: review(row)?,
        last_offset: to_u64(get(row, "last_offset")?)?,
    };
    Ok((Tenant::new(text(row, "tenant")?), found))
}

/// The columns `kind` and `module`; the module of a relayed call is empty.
pub(super) fn kind_columns(kind: &RunKind) -> (&'static str, &str) {
    match kind {
        RunKind::Module(name) => ("module", name),
        RunKind::Relay => ("relay", ""),
    }
}

fn kind(row: &Row<'_>) -> Result<RunKind, JournalError> {
    match text(row, "kind")? {
        "module" => Ok(RunKind::Module(get(row, "module")?)),
        "relay" => Ok(RunKind::Relay),
        other => Err(corrupt("kind", other)),
    }
}

fn review(row: &Row<'_>) -> Result<Option<Review>, JournalError> {
    let Some(reason) = get::<Option<String>>(row, "review_reason")? else {
        return Ok(None);
    };
    let decision: Option<String> = get(row, "review_decision")?;
    let verdict = match decision {
        None => None,
        Some(text) => Some(ReviewDecision {
            decision: ReviewOutcome::find(&text).ok_or_else(|| corrupt("review_decision", &text))?,
            by: get::<Option<String>>(row, "review_by")?.unwrap_or_default(),
            comment: get(row, "review_comment")?,
            data: get(row, "review_data")?,
            at_ms: to_u64(get::<Option<i64>>(row, "review_at_ms")?.unwrap_or_default())?,
        }),
    };
    Ok(Some(Review { reason, verdict }))
}

pub(super) fn get<T: FromSql>(row: &Row<'_>, column: &str) -> Result<T, JournalError> {
    row.get(column).map_err(failed)
}

/// A text that is converted in place.
pub(super) fn text<'r>(row: &'r Row<'_>, column: &str) -> Result<&'r str, JournalError> {
    let value = row.get_ref(column).map_err(failed)?;
    value.as_str().map_err(JournalError::from_backend)
}

/// SQLite integers are `i64`. Only a number from a client can exceed them, and such a row does not exist.
pub(super) fn to_i64(value: u64) -> Result<i64, JournalError> {
    i64::try_from(value).map_err(JournalError::from_backend)
}

pub(super) fn to_u64(value: i64) -> Result<u64, JournalError> {
    u64::try_from(value).map_err(JournalError::from_backend)
}

/// An optional count.
pub(super) fn count(row: &Row<'_>, column: &str) -> Result<Option<u64>, JournalError> {
    get::<Option<i64>>(row, column)?.map(to_u64).transpose()
}

pub(super) fn corrupt(column: &str, value: &str) -> JournalError {
    JournalError::from_backend(format!("invalid value {value:?} in column {column}"))
}
