//! The adapters of this crate against the suites of their ports.

#[cfg(test)]
mod accounting;
#[cfg(test)]
mod archive;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damaged;
#[cfg(test)]
mod disk_full;
mod journal;
mod keys;
