//! Open streams per client. A permit is acquired before a stream starts and released on drop.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use module::Code;
use module::envelope::ErrorBody;
use tenancy::Caller;

use crate::auth::AuthenticatedCaller;
use crate::request::Reservation;
use crate::response::ApiError;

/// The authenticated caller and the key of its limits.
#[derive(Clone, Debug)]
pub(crate) struct ClientStreams {
    pub(crate) caller: Arc<Caller>,
    name: ClientKey,
    /// What this request acquired before its body was read.
    pub(crate) reservation: Reservation,
}

/// Key under which streams are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ClientKey {
    Address(IpAddr),
    Credentials(Arc<str>),
}

impl fmt::Display for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Credentials(client) => f.write_str(client),
        }
    }
}

impl ClientStreams {
    /// Counted by credentials, or by remote address if there are none.
    pub(crate) fn of(extensions: &Extensions) -> Result<Self, ApiError> {
        let AuthenticatedCaller(caller) = AuthenticatedCaller::of(extensions)?;
        let address = extensions.get::<ConnectInfo<SocketAddr>>();
        let name = match (caller.is_local(), address) {
            (true, Some(ConnectInfo(address))) => ClientKey::Address(address.ip()),
            _ => ClientKey::Credentials(Arc::from(caller.client.as_str())),
        };
        Ok(Self {
            caller,
            name,
            reservation: Reservation::default(),
        })
    }

    /// The local user who started this process, connected through a pipe.
    pub(crate) fn local_process() -> Self {
        let caller = Caller::local();
        Self {
            name: ClientKey::Credentials(Arc::from(caller.client.as_str())),
            caller: Arc::new(caller),
            reservation: Reservation::default(),
        }
    }

    /// Key of data that belongs to this client only.
    pub(crate) fn owner(&self) -> String {
        format!("{}/{}", self.caller.tenant, self.name)
    }
}

#[derive(Debug, Default)]
pub(crate) struct StreamLimiter(Mutex<HashMap<ClientKey, usize>>);

/// Permit for one open stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    seats: Arc<StreamLimiter>,
    name: ClientKey,
}

impl StreamLimiter {
    pub(crate) fn acquire(
        self: &Arc<Self>,
        client: &ClientStreams,
        max: usize,
    ) -> Result<StreamPermit, ApiError> {
        let mut taken = self.lock();
        let count = taken.get(&client.name).copied().unwrap_or_default();
        if count >= max {
            let message = format!("{count} streams are open, and no more are allowed");
            let body = ErrorBody::new(Code::E4002, message)
                .detail("limit", "streams_per_client_max")
                .detail("allowed", max)
                .detail("retry_after_ms", 1_000);
            return Err(ApiError::new(body));
        }
        taken.insert(client.name.clone(), count + 1);
        Ok(StreamPermit {
            seats: self.clone(),
            name: client.name.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientKey, usize>> {
        // No code panics while it holds the lock, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        match taken.get_mut(&self.name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.name)),
        }
    }
}
