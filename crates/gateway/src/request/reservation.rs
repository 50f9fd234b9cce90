//! What a call acquires before its body is read: a run permit or a place in the queue, and a part of the
//! memory of bodies. The call takes both over; whatever it does not take is released with it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;

use crate::limit::{Acquire, BodyPermit};
use crate::limits;
use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;

#[derive(Clone, Default)]
pub(crate) struct Reservation(Arc<Mutex<Reserved>>);

#[derive(Default)]
struct Reserved {
    turn: Option<Acquire>,
    body: Option<BodyPermit>,
}

impl Reservation {
    pub(crate) fn take_turn(&self) -> Option<Acquire> {
        self.lock().turn.take()
    }

    /// The part of the memory that is held until the call has ended.
    pub(crate) fn take_body(&self) -> Option<BodyPermit> {
        let body = self.lock().body.take();
        body.and_then(BodyPermit::for_call)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Reserved> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reservation")
    }
}

/// Acquires a run permit or a place in the queue for a call whose body is read by other means.
pub(crate) fn reserve_turn(gateway: &Gateway, client: &ClientStreams) -> Result<(), ApiError> {
    let turn = gateway.limiter.try_acquire(&client.caller)?;
    client.reservation.lock().turn = Some(turn);
    Ok(())
}

/// Reads the body of a call that starts a run. Without a run permit only a short body is read, or one whose
/// headers say that it may repeat or resume an earlier call, which needs none.
pub(crate) async fn read_call(
    gateway: &Gateway,
    client: &ClientStreams,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, ApiError> {
    let mut permit = gateway.body_budget.start(&client.owner()).await?;
    let turn = gateway.limiter.try_acquire(&client.caller);
    let may_repeat = ["idempotency-key", "x-cognitive-recovery-session"]
        .iter()
        .any(|name| headers.contains_key(*name));
    let read = match &turn {
        Err(_) if !may_repeat => {
            super::read_within(gateway, &mut permit, body, limits::REFUSED_BODY_BYTES_MAX).await
        }
        _ => super::read_within(gateway, &mut permit, body, limits::BODY_BYTES_MAX).await,
    };
    let read = match (turn, read) {
        (Ok(turn), read) => {
            client.reservation.lock().turn = Some(turn);
            read?
        }
        // The call is refused again if it turns out to need a permit.
        (Err(_), Ok(read)) => read,
        (Err(refusal), Err(_)) => return Err(refusal),
    };
    client.reservation.lock().body = Some(permit);
    Ok(read)
}
