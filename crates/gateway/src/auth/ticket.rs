//! Tickets: a browser's `EventSource` and its `WebSocket` cannot send a header, so they may show a word in the
//! query instead. Queries end up in logs and histories; so the word opens one thing, once, and soon nothing at
//! all. It lives in memory only: a restarted server asks for a new one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::Uri;
use ir::RunId;
use module::Code;
use module::envelope::ErrorBody;
use sha2::{Digest, Sha256};
use tenancy::{Caller, Scope};

use crate::limits;
use crate::response::ApiError;

#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<[u8; 32], Ticket>>);

#[derive(Debug)]
struct Ticket {
    scope: TicketScope,
    caller: Caller,
    expires_at_ms: u64,
}

/// What a ticket is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketScope {
    /// The events of a run, to be read.
    Events(RunId),
    /// A WebSocket, with all that its caller may do.
    Socket,
}

impl TicketScope {
    pub(crate) fn path(self) -> String {
        match self {
            Self::Events(run) => format!("/v1/runs/{run}/events"),
            Self::Socket => String::from("/v1/ws"),
        }
    }
}

/// A ticket as its holder gets it.
#[derive(Debug)]
pub(crate) struct IssuedTicket {
    pub(crate) token: String,
    pub(crate) expires_at_ms: u64,
}

impl Tickets {
    pub(crate) fn issue(&self, caller: &Caller, opens: TicketScope, now_ms: u64) -> Result<IssuedTicket, ApiError> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits)
            .map_err(|_| ApiError::new(ErrorBody::new(Code::E4000, "there is no randomness")))?;
        let word = hex::encode(bits);
        let expires_at_ms = now_ms.saturating_add(limits::TICKET_MS);
        let mut caller = caller.clone();
        if let TicketScope::Events(_) = opens {
            caller.scopes = [Scope::Read].into_iter().collect();
        }
        let mut tickets = self.lock();
        if tickets.len() >= limits::TICKETS_MAX {
            tickets.retain(|_, ticket| ticket.expires_at_ms > now_ms);
        }
        if tickets.len() >= limits::TICKETS_MAX {
            let body = ErrorBody::new(Code::E4002, "too many tickets wait to be used");
            return Err(ApiError::new(body.detail("retry_after_ms", limits::TICKET_MS)));
        }
        let ticket = Ticket {
            scope: opens,
            caller,
            expires_at_ms,
        };
        tickets.insert(hash(&word), ticket);
        Ok(IssuedTicket { token: word, expires_at_ms })
    }

    /// Whoever got the ticket that this address shows; `None` if it shows none. A ticket that is shown is
    /// spent, whether it fits or not.
    pub(crate) fn redeem(&self, uri: &Uri, now_ms: u64) -> Option<Result<Caller, ()>> {
        let word = uri
            .query()?
            .split('&')
            .find_map(|pair| pair.strip_prefix("token="))?;
        let ticket = self.lock().remove(&hash(word));
        let fits = ticket.filter(|ticket| ticket.expires_at_ms > now_ms && uri.path() == ticket.scope.path());
        Some(fits.map(|ticket| ticket.caller).ok_or(()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Ticket>> {
        // No code panics while it holds the lock, so a poisoned map is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is held is not what opens.
fn hash(word: &str) -> [u8; 32] {
    Sha256::digest(word.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::{Caller, TicketScope, RunId, Tickets, limits};

    #[test]
    fn a_ticket_opens_one_run_once_and_soon_not_at_all() {
        let tickets = Tickets::default();
        let (run, other) = (RunId::from_parts(1, 1), RunId::from_parts(1, 2));
        let issue = || {
            let opens = TicketScope::Events(run);
            tickets.issue(&Caller::local(), opens, 0).unwrap().token
        };
        let redeem = |run: RunId, word: &str, now_ms| {
            let uri = format!("/v1/runs/{run}/events?a=b&token={word}").parse().unwrap();
            tickets.redeem(&uri, now_ms).expect("a ticket is shown")
        };
        let word = issue();
        let caller = redeem(run, &word, 1).expect("it is good");
        assert_eq!(caller.scopes.to_string(), "read");
        assert!(redeem(run, &word, 1).is_err(), "a second time");
        let word = issue();
        assert!(redeem(other, &word, 1).is_err(), "another run");
        assert!(redeem(run, &word, 1).is_err(), "it was shown");
        let word = issue();
        assert!(redeem(run, &word, limits::TICKET_MS).is_err(), "too late");
        assert!(redeem(run, "nonsense", 1).is_err());
        let cancel = format!("/v1/runs/{run}/cancel?token={}", issue())
            .parse()
            .unwrap();
        assert!(
            tickets.redeem(&cancel, 1).expect("shown").is_err(),
            "another path"
        );
        let plain = format!("/v1/runs/{run}/events").parse().unwrap();
        assert!(tickets.redeem(&plain, 1).is_none());
        let socket = tickets.issue(&Caller::local(), TicketScope::Socket, 0).unwrap().token;
        let uri = format!("/v1/ws?token={socket}").parse().unwrap();
        let caller = tickets.redeem(&uri, 1).unwrap().expect("it is good");
        assert_eq!(caller.scopes, Caller::local().scopes);
        assert!(
            redeem(run, &socket, 1).is_err(),
            "it was a socket's, and is spent"
        );
    }
}
