//! SQLite: the default, a file next to the server. Statements are plain SQL in files of their own.
//! Write-ahead logging with `synchronous = NORMAL` survives a killed process; a power failure may lose the
//! last writes unless the operator configures `FULL`.

mod accounting;
mod archive;
mod database;
mod inserts;
mod journal;
mod keys;
mod quarantine;
mod row;
mod schema;
mod wal_checkpoint;
mod writer;

pub use database::Options;
pub use journal::SqliteJournal;
pub use keys::SqliteKeys;
