//! How many streams each client has open. A seat is taken before a stream begins and given back when it
//! is dropped, however that comes about.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use module::Code;
use module::envelope::ErrorBody;

use crate::reply::Refusal;

/// Who asks, as far as limits are concerned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client(Arc<str>);

impl Client {
    /// The address that the request came from, where nothing better is known.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let address = extensions.get::<ConnectInfo<SocketAddr>>();
        let name = address.map_or_else(String::new, |ConnectInfo(address)| address.ip().to_string());
        Self(Arc::from(name))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<HashMap<Client, usize>>);

/// One open stream.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    client: Client,
}

impl Seats {
    pub(crate) fn take(self: &Arc<Self>, client: &Client, max: usize) -> Result<Seat, Refusal> {
        let mut taken = self.lock();
        let count = taken.get(client).copied().unwrap_or_default();
        if count >= max {
            let message = format!("{count} streams are open, and no more are allowed");
            let body = ErrorBody::new(Code::E4002, message)
                .detail("limit", "streams_per_client_max")
                .detail("allowed", max)
                .detail("retry_after_ms", 1_000);
            return Err(Refusal::new(body));
        }
        taken.insert(client.clone(), count + 1);
        Ok(Seat {
            seats: self.clone(),
            client: client.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Client, usize>> {
        // No code panics while it holds the lock, so a poisoned map is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        match taken.get_mut(&self.client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.client)),
        }
    }
}
