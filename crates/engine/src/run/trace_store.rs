//! The traces of runs that have ended, for as long as there is room: the latest ones.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ir::RunId;

use super::record::Trace;
use crate::limits;
use tenancy::Tenant;

#[derive(Debug, Default)]
pub(crate) struct TraceStore {
    shelf: Mutex<TraceStoreInner>,
    witness: OnceLock<TraceSink>,
}

/// Someone who is told of every run that ends. It must not block.
pub struct TraceSink(pub Box<dyn Fn(&Trace) + Send + Sync>);

impl fmt::Debug for TraceSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}

#[derive(Debug, Default)]
struct TraceStoreInner {
    traces: HashMap<RunId, (Tenant, Arc<Trace>)>,
    order: VecDeque<RunId>,
}

impl TraceStore {
    /// The first witness stays.
    pub(crate) fn set_sink(&self, witness: TraceSink) {
        self.witness.set(witness).ok();
    }

    pub(crate) fn put(&self, tenant: &Tenant, trace: Trace) {
        if let Some(TraceSink(tell)) = self.witness.get() {
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

    fn shelf(&self) -> MutexGuard<'_, TraceStoreInner> {
        // No code panics while it holds the lock.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
