//! SQLite: the default, a file beside the server. Statements stand as plain SQL in files of their own.
//! Write-ahead logging with `synchronous = NORMAL` survives a killed process; power loss may cost the
//! last moments unless the operator asks for `FULL`.

mod archive;
mod booking;
mod spool;
mod wal_checkpoint;
mod database;
mod inserts;
mod journal;
mod keys;
mod row;
mod schema;
mod writer;

pub use database::Options;
pub use journal::SqliteJournal;
pub use keys::SqliteKeys;
