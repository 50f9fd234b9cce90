//! Back-ends against servers that say exactly what a test wants.

#[cfg(test)]
mod http;
#[cfg(test)]
mod server;
