//! Tickets: a browser cannot send headers with `EventSource` and `WebSocket`, so these may send a token in
//! the query instead. Queries end up in logs and histories; so the token grants access to one resource, once,
//! and expires soon. Tickets are kept in memory only: after a restart the client requests a new one.

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

/// Resource that a ticket grants access to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketScope {
    /// Read access to the events of a run.
    Events(RunId),
    /// A WebSocket with all rights of the caller.
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

/// A ticket as returned to the client.
#[derive(Debug)]
pub(crate) struct IssuedTicket {
    pub(crate) token: String,
    pub(crate) expires_at_ms: u64,
}

impl Tickets {
    pub(crate) fn issue(
        &self,
        caller: &Caller,
        opens: TicketScope,
        now_ms: u64,
    ) -> Result<IssuedTicket, ApiError> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).map_err(|_| {
            ApiError::new(ErrorBody::new(
                Code::E4000,
                "the random number generator of the system failed",
            ))
        })?;
        let word = hex::encode(bits);
        let expires_at_ms = now_ms.saturating_add(limits::TICKET_MS);
        let mut caller = caller.clone();
        if let TicketScope::Events(_) = opens {
            caller.scopes = [Scope::Read].into_iter().collect();
        }
        let mut tickets = self.lock();
        tickets.retain(|_, ticket| ticket.expires_at_ms > now_ms);
        let own = tickets
            .values()
            .filter(|ticket| ticket.caller.client == caller.client);
        if own.count() >= limits::TICKETS_PER_CALLER_MAX || tickets.len() >= limits::TICKETS_MAX {
            let body = ErrorBody::new(Code::E4002, "too many unused tickets");
            return Err(ApiError::new(body.detail("retry_after_ms", limits::TICKET_MS)));
        }
        let ticket = Ticket {
            scope: opens,
            caller,
            expires_at_ms,
        };
        tickets.insert(hash(&word), ticket);
        Ok(IssuedTicket {
            token: word,
            expires_at_ms,
        })
    }

    /// The caller of the ticket in this URI; `None` if it has none. Redeeming consumes the ticket, even if it
    /// does not match.
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
        // No code panics while it holds the lock, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Only hashes are stored.
fn hash(word: &str) -> [u8; 32] {
    Sha256::digest(word.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::{Caller, RunId, TicketScope, Tickets, limits};

    #[test]
    fn one_caller_cannot_use_up_all_tickets() {
        let tickets = Tickets::default();
        let greedy = Caller {
            client: String::from("greedy"),
            ..Caller::local()
        };
        let issue = |caller: &Caller, now_ms| tickets.issue(caller, TicketScope::Socket, now_ms).is_ok();
        for _ in 0..limits::TICKETS_PER_CALLER_MAX {
            assert!(issue(&greedy, 0));
        }
        assert!(!issue(&greedy, 1));
        assert!(issue(&Caller::local(), 1), "another caller");
        assert!(issue(&greedy, limits::TICKET_MS), "the unused ones have expired");
    }

    #[test]
    fn ticket_is_single_use_and_expires() {
        let tickets = Tickets::default();
        let (run, other) = (RunId::from_parts(1, 1), RunId::from_parts(1, 2));
        let issue = || {
            let opens = TicketScope::Events(run);
            tickets.issue(&Caller::local(), opens, 0).unwrap().token
        };
        let redeem = |run: RunId, word: &str, now_ms| {
            let uri = format!("/v1/runs/{run}/events?a=b&token={word}").parse().unwrap();
            tickets.redeem(&uri, now_ms).expect("the URI has a ticket")
        };
        let word = issue();
        let caller = redeem(run, &word, 1).expect("valid ticket");
        assert_eq!(caller.scopes.to_string(), "read");
        assert!(redeem(run, &word, 1).is_err(), "a second time");
        let word = issue();
        assert!(redeem(other, &word, 1).is_err(), "another run");
        assert!(redeem(run, &word, 1).is_err(), "already consumed");
        let word = issue();
        assert!(redeem(run, &word, limits::TICKET_MS).is_err(), "expired");
        assert!(redeem(run, "nonsense", 1).is_err());
        let cancel = format!("/v1/runs/{run}/cancel?token={}", issue())
            .parse()
            .unwrap();
        assert!(
            tickets.redeem(&cancel, 1).expect("the URI has a ticket").is_err(),
            "another path"
        );
        let plain = format!("/v1/runs/{run}/events").parse().unwrap();
        assert!(tickets.redeem(&plain, 1).is_none());
        let socket = tickets
            .issue(&Caller::local(), TicketScope::Socket, 0)
            .unwrap()
            .token;
        let uri = format!("/v1/ws?token={socket}").parse().unwrap();
        let caller = tickets.redeem(&uri, 1).unwrap().expect("valid ticket");
        assert_eq!(caller.scopes, Caller::local().scopes);
        assert!(
            redeem(run, &socket, 1).is_err(),
            "a socket ticket, already consumed"
        );
    }
}
