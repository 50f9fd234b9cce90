//! The open connections, in total and per address. A connection that has not sent a complete request yet is
//! half-open: at a limit, the oldest half-open one is closed in favour of a new one, so that clients that only
//! connect cannot lock out others.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::network::Network;
use crate::limits::HALF_OPEN_MIN;
use crate::settings::Settings;

#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    per_address_max: usize,
    trusted: Vec<Network>,
    open: Mutex<OpenConnections>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
    /// By age.
    half_open: BTreeMap<u64, HalfOpen>,
    accepted: u64,
}

#[derive(Debug)]
struct HalfOpen {
    address: IpAddr,
    since: Instant,
    close: CancellationToken,
}

/// One open connection; it counts until it is dropped or closed in favour of another.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    connections: Arc<Connections>,
    number: u64,
    address: IpAddr,
    half_open: AtomicBool,
    close: CancellationToken,
}

impl Connections {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            max: settings.connections_max,
            per_address_max: settings
                .connections_per_address_max
                .unwrap_or_else(|| settings.connections_max.div_ceil(2)),
            trusted: settings.trusted_proxies.clone(),
            open: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Waits until another connection can be accepted.
    pub(super) async fn room(&self) {
        loop {
            let changed = self.changed.notified();
            let ready_at = {
                let open = self.lock();
                match open.half_open.first_key_value() {
                    _ if open.total < self.max => return,
                    oldest => oldest.map(|(_, oldest)| oldest.since + HALF_OPEN_MIN),
                }
            };
            match ready_at {
                Some(ready_at) if ready_at <= Instant::now() => return,
                Some(ready_at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(ready_at) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Counts a new connection, closing a half-open one if there is no room. `None` if it must be closed
    /// itself. Addresses of trusted proxies have no limit of their own.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<ConnectionGuard> {
        let address = address.to_canonical();
        let mut open = self.lock();
        let is_proxy = self.trusted.iter().any(|network| network.contains(address));
        let of_address = open.by_address.get(&address).copied().unwrap_or_default();
        if !is_proxy && of_address >= self.per_address_max {
            open.close_oldest(now, |half| half.address == address)?;
        }
        if open.total >= self.max {
            open.close_oldest(now, |_| true)?;
        }
        open.total += 1;
        *open.by_address.entry(address).or_default() += 1;
        open.accepted += 1;
        let (number, close) = (open.accepted, CancellationToken::new());
        let half_open = HalfOpen {
            address,
            since: now,
            close: close.clone(),
        };
        open.half_open.insert(number, half_open);
        Some(ConnectionGuard {
            connections: self.clone(),
            number,
            address,
            half_open: AtomicBool::new(true),
            close,
        })
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        // No code panics while it holds the lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn close_oldest(&mut self, now: Instant, of: impl Fn(&HalfOpen) -> bool) -> Option<()> {
        let (number, half) = self.half_open.iter().find(|(_, half)| of(half))?;
        // A client gets some time to send its request.
        if now.duration_since(half.since) < HALF_OPEN_MIN {
            return None;
        }
        let number = *number;
        let half = self.half_open.remove(&number)?;
        self.uncount(half.address);
        half.close.cancel();
        Some(())
    }

    fn uncount(&mut self, address: IpAddr) {
        self.total -= 1;
        match self.by_address.get_mut(&address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.by_address.remove(&address)),
        }
    }
}

impl ConnectionGuard {
    /// A complete request has arrived: the connection is not closed for others any more.
    pub(super) fn on_request(&self) {
        if self.half_open.load(Ordering::Relaxed) && self.half_open.swap(false, Ordering::Relaxed) {
            self.connections.lock().half_open.remove(&self.number);
        }
    }

    /// Serves the connection until it ends, or is closed in favour of another. `None` in the second case.
    pub(super) async fn serve(&self, connection: impl Future<Output = ()>) -> Option<()> {
        let mut connection = std::pin::pin!(connection);
        let mut closed = std::pin::pin!(self.close.cancelled());
        std::future::poll_fn(|context| {
            if self.half_open.load(Ordering::Relaxed) && closed.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            connection.as_mut().poll(context).map(Some)
        })
        .await
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        if !self.close.is_cancelled() {
            let mut open = self.connections.lock();
            open.half_open.remove(&self.number);
            // It may have been closed in favour of another in between.
            if !self.close.is_cancelled() {
                open.uncount(self.address);
            }
        }
        self.connections.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;
    use tokio::time::Instant;

    use super::{ConnectionGuard, Connections};
    use crate::limits::HALF_OPEN_MIN;
    use crate::settings::Settings;

    fn connections(max: usize, per_address: usize) -> Arc<Connections> {
        Arc::new(Connections::new(&Settings {
            connections_max: max,
            connections_per_address_max: Some(per_address),
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            ..Settings::default()
        }))
    }

    fn open(connections: &Arc<Connections>, address: &str, now: Instant) -> Option<ConnectionGuard> {
        connections.admit(address.parse().unwrap(), now)
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_half_open_connection_is_closed_for_a_new_one() {
        let connections = connections(3, 3);
        let start = Instant::now();
        let first: Vec<_> = (0..3)
            .filter_map(|_| open(&connections, "1.1.1.1", start))
            .collect();
        first[0].on_request();
        assert!(connections.room().now_or_never().is_none());
        assert!(
            open(&connections, "2.2.2.2", start).is_none(),
            "they get time to send a request"
        );
        let later = start + HALF_OPEN_MIN;
        connections.room().await;
        let new = open(&connections, "2.2.2.2", later).expect("room");
        assert!(!first[0].close.is_cancelled() && first[1].close.is_cancelled());
        assert!(first[1].serve(std::future::pending()).now_or_never() == Some(None));
        assert!(first[0].serve(std::future::pending()).now_or_never().is_none());
        // Each is counted once, however it ends.
        drop((first, new));
        let open = connections.lock();
        assert_eq!(
            (open.total, open.by_address.len(), open.half_open.len()),
            (0, 0, 0)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn address_has_a_limit_and_a_trusted_proxy_has_none() {
        let connections = connections(10, 2);
        let now = Instant::now();
        let held: Vec<_> = (0..3)
            .filter_map(|_| open(&connections, "1.1.1.1", now))
            .collect();
        assert_eq!(held.len(), 2);
        assert!(
            open(&connections, "::ffff:1.1.1.1", now).is_none(),
            "the same address"
        );
        assert!(open(&connections, "2.2.2.2", now).is_some());
        let proxied: Vec<_> = (0..5)
            .filter_map(|_| open(&connections, "10.1.2.3", now))
            .collect();
        assert_eq!(proxied.len(), 5);
        // Connections with a request are never closed for others.
        held.iter().for_each(ConnectionGuard::on_request);
        assert!(open(&connections, "1.1.1.1", now + HALF_OPEN_MIN).is_none());
    }
}
