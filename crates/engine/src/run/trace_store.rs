//! The traces of runs that have ended, for as long as there is room: the latest ones.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ir::RunId;

use super::record::Trace;
use crate::limits;
use tenancy::Tenant;

#[derive(Debug, Default)]
pub(crate) struct Traces {
    shelf: Mutex<Shelf>,
    witness: OnceLock<Witness>,
}

/// Someone who is told of every run that ends. It must not block.
pub struct Witness(pub Box<dyn Fn(&Trace) + Send + Sync>);

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}

#[derive(Debug, Default)]
struct Shelf {
    traces: HashMap<RunId, (Tenant, Arc<Trace>)>,
    order: VecDeque<RunId>,
}

impl Traces {
    /// The first witness stays.
    pub(crate) fn tell(&self, witness: Witness) {
        self.witness.set(witness).ok();
    }

    pub(crate) fn put(&self, tenant: &Tenant, trace: Trace) {
        if let Some(Witness(tell)) = self.witness.get() {
            tell(&trace);
        }
        let mut shelf = self.shelf();
        if shelf.order.len() >= limits::TRACES_MAX
            && let Some(oldest) = shelf.order.pop_front()
        {
            shelf.traces.remove(&oldest);
        }
        shelf.order.push_back(trace.run);
        shelf.traces.insert(trace.run, (tenant.clone(), Arc::new(trace)));
    }

    pub(crate) fn get(&self, tenant: &Tenant, run: RunId) -> Option<Arc<Trace>> {
        let shelf = self.shelf();
        let (owner, trace) = shelf.traces.get(&run)?;
        (owner == tenant).then(|| trace.clone())
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // No code panics while it holds the lock.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
