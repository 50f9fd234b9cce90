//! Owners of the sessions of older clients. The SDK identifies sessions by id only; here each belongs to the
//! client that opened it and does not exist for others. A client over the limit loses its least recently used
//! session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits;

#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<SessionTable>);

#[derive(Debug, Default)]
struct SessionTable {
    sessions: HashMap<Arc<str>, Session>,
    /// Use counter, for the least recently used session.
    uses: u64,
}

#[derive(Debug)]
struct Session {
    owner: Arc<str>,
    used: u64,
}

impl Sessions {
    /// Whether the session belongs to this owner; counts as a use.
    pub(super) fn is_of(&self, id: &str, owner: &str) -> bool {
        let mut register = self.lock();
        register.uses += 1;
        let used = register.uses;
        let session = register.sessions.get_mut(id);
        session
            .filter(|session| *session.owner == *owner)
            .map(|session| session.used = used)
            .is_some()
    }

    /// Adds a session; returns the evicted ones.
    pub(super) fn add(&self, id: &str, owner: &str) -> Vec<Arc<str>> {
        let mut register = self.lock();
        register.uses += 1;
        let session = Session {
            owner: Arc::from(owner),
            used: register.uses,
        };
        register.sessions.insert(Arc::from(id), session);
        let mut gone = Vec::new();
        let of_owner = register.sessions.values();
        let of_owner = of_owner.filter(|session| *session.owner == *owner).count();
        if of_owner > limits::MCP_SESSIONS_PER_CLIENT_MAX {
            gone.extend(register.drop_oldest(Some(owner)));
        }
        if register.sessions.len() > limits::MCP_SESSIONS_MAX {
            gone.extend(register.drop_oldest(None));
        }
        gone
    }

    pub(super) fn forget(&self, id: &str) {
        self.lock().sessions.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        // No code panics while it holds the lock, so a poisoned register is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    fn drop_oldest(&mut self, owner: Option<&str>) -> Option<Arc<str>> {
        let sessions = self.sessions.iter();
        let theirs = sessions.filter(|(_, session)| owner.is_none_or(|owner| *session.owner == *owner));
        let oldest = theirs.min_by_key(|(_, session)| session.used);
        let oldest = oldest.map(|(id, _)| id.clone())?;
        self.sessions.remove(&oldest);
        Some(oldest)
    }
}
