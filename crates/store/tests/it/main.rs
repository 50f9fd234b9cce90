//! The journals of this crate against the suite of their port.

#[cfg(test)]
mod archive;
#[cfg(test)]
mod spool;
#[cfg(test)]
mod disk_full;
mod journal;
mod keys;
