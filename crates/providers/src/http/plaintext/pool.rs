//! Idle connections. The most recently used connection is reused first; a connection that the server closed
//! is detected before it is reused. There is no background task: callers remove expired connections.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

/// Idle timeout. Many servers close idle connections after five seconds (llama.cpp, uvicorn, Node.js); if
/// that happens while a request is sent, the request is lost undetectably. Without TLS another connection
/// costs little.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// How many of them wait at one server.
const IDLE_COUNT_MAX: usize = 1_024;
/// How often all of them are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Shelves>);

#[derive(Debug, Default)]
struct Shelves {
    by_host: HashMap<Arc<str>, Vec<Idle>>,
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Idle {
    socket: TcpStream,
    since: Instant,
}

impl Idle {
    /// Nothing comes unasked, so that anything but silence is an end.
    fn is_good(&self, now: Instant) -> bool {
        let silent = match self.socket.try_read(&mut [0]) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            Ok(_) => false,
        };
        silent && now.duration_since(self.since) < IDLE_MAX
    }
}

impl Pool {
    pub(super) fn take(&self, host: &str) -> Option<TcpStream> {
        let now = Instant::now();
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = shelves.by_host.get_mut(host)?;
        while let Some(idle) = shelf.pop() {
            if idle.is_good(now) {
                return Some(idle.socket);
            }
        }
        None
    }

    pub(super) fn put(&self, host: Arc<str>, socket: TcpStream) {
        let now = Instant::now();
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shelves
            .swept
            .is_none_or(|then| now.duration_since(then) > SWEEP_EVERY)
        {
            shelves.by_host.retain(|_, shelf| {
                shelf.retain(|idle| idle.is_good(now));
                !shelf.is_empty()
            });
            shelves.swept = Some(now);
        }
        let shelf = shelves.by_host.entry(host).or_default();
        if shelf.len() < IDLE_COUNT_MAX {
            shelf.push(Idle { socket, since: now });
        }
    }
}
