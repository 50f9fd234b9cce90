//! The latest traces of runs that have ended, up to a maximum number.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ir::RunId;

use super::record::Trace;
use crate::limits;
use tenancy::Tenant;

#[derive(Debug, Default)]
pub(crate) struct TraceStore {
    inner: Mutex<TraceStoreInner>,
    sink: OnceLock<TraceSink>,
}

/// Receives the trace of every run that ends. It must not block.
pub struct TraceSink(pub Box<dyn Fn(&Trace) + Send + Sync>);

impl fmt::Debug for TraceSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceSink")
    }
}

#[derive(Debug, Default)]
struct TraceStoreInner {
    traces: HashMap<RunId, (Tenant, Arc<Trace>)>,
    order: VecDeque<RunId>,
}

impl TraceStore {
    /// Sets the sink. Only the first one set is used.
    pub(crate) fn set_sink(&self, sink: TraceSink) {
        self.sink.set(sink).ok();
    }

    pub(crate) fn put(&self, tenant: &Tenant, trace: Trace) {
        if let Some(TraceSink(send)) = self.sink.get() {
            send(&trace);
        }
        let mut inner = self.inner();
        if inner.order.len() >= limits::TRACES_MAX
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.traces.remove(&oldest);
        }
        inner.order.push_back(trace.run);
        inner.traces.insert(trace.run, (tenant.clone(), Arc::new(trace)));
    }

    pub(crate) fn get(&self, tenant: &Tenant, run: RunId) -> Option<Arc<Trace>> {
        let inner = self.inner();
        let (owner, trace) = inner.traces.get(&run)?;
        (owner == tenant).then(|| trace.clone())
    }

    fn inner(&self) -> MutexGuard<'_, TraceStoreInner> {
        // No code panics while holding the lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
