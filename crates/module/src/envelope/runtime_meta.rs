//! Fields of meta that only the runtime can set: model, processing time, processed media. A model's own
//! values for them are removed before these are written.

use std::sync::Arc;

use ir::Request;
use serde_json::{Map, Value};

/// Runtime fields of meta; `None` is not written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuntimeMeta {
    /// `provider/model`.
    pub model: Option<String>,
    pub processing_time_ms: Option<u64>,
    pub latency_ms: Option<u64>,
    pub trace_id: Option<String>,
    pub media_processed: Option<Value>,
    pub media_validation: Option<Value>,
}

/// Inputs of a check besides the reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckOptions {
    pub facts: RuntimeMeta,
    /// The request that was answered. Without it, copies of the prompt are not detected.
    pub request: Option<Arc<Request>>,
}

impl RuntimeMeta {
    /// Takes the runtime fields out of a meta that a runtime has written, if their types are correct.
    pub(super) fn take(meta: &mut Map<String, Value>) -> Self {
        let mut text = |key: &str| match meta.shift_remove(key)? {
            Value::String(text) => Some(text),
            _ => None,
        };
        let (model, trace_id) = (text("model"), text("trace_id"));
        let mut number = |key: &str| meta.shift_remove(key)?.as_u64();
        Self {
            model,
            trace_id,
            processing_time_ms: number("processing_time_ms"),
            latency_ms: number("latency_ms"),
            media_processed: meta.shift_remove("media_processed"),
            media_validation: meta.shift_remove("media_validation"),
        }
    }

    pub(super) fn write(&self, meta: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                meta.insert(String::from(key), value);
            }
        };
        put("model", self.model.as_deref().map(Value::from));
        // Two versions of the format use different names for the same duration; both are written.
        let processing = self.processing_time_ms.or(self.latency_ms);
        let latency = self.latency_ms.or(self.processing_time_ms);
        put("processing_time_ms", processing.map(Value::from));
        put("latency_ms", latency.map(Value::from));
        put("trace_id", self.trace_id.as_deref().map(Value::from));
        put("media_processed", self.media_processed.clone());
        put("media_validation", self.media_validation.clone());
    }
}
