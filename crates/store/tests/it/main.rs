//! The adapters of this crate against the suites of their ports.

#[cfg(test)]
mod accounting;
#[cfg(test)]
mod archive;
#[cfg(test)]
mod damaged;
#[cfg(test)]
mod disk_full;
mod journal;
mod keys;
