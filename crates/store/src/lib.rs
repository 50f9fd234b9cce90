//! Journals and metadata on SQLite, and in memory for tests.
