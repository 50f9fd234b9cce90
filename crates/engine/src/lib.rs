//! Runs, attempts, journal and resume; the ports they stand on.
