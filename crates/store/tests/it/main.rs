//! The journals of this crate against the suite of their port.

#[cfg(test)]
mod archive;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod full_file;
mod journal;
mod keys;
