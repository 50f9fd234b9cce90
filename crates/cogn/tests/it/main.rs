//! The binary from outside: arguments in; stdout, stderr and exit code out.

#[cfg(test)]
mod explain;
#[cfg(test)]
mod reference;
