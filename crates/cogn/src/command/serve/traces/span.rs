//! Encodes the trace record of a run as spans in OTLP JSON.

use engine::run::{AttemptOutcome, AttemptRecord, Trace};
use ir::{Operation, TraceContext, Usage};
use serde_json::{Value, json};

const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const ERROR: u8 = 2;

/// The span of the run, then one span per attempt.
pub(super) fn spans(trace: &Trace) -> Vec<Value> {
    let Some(context) = trace.context() else {
        return Vec::new();
    };
    let began_ms = trace.run.at_ms();
    let took_ms = trace
        .attempts
        .iter()
        .map(|attempt| attempt.started_ms + attempt.latency_ms)
        .max();
    let mut run = json!({
        "traceId": context.trace_id(),
        "spanId": context.span_id(),
        "name": name(&trace.module),
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(began_ms),
        "endTimeUnixNano": nanos(began_ms + took_ms.unwrap_or_default()),
        "attributes": attributes(&[
            ("gen_ai.operation.name", Value::from(operation(trace))),
            ("gen_ai.request.model", Value::from(trace.requested_model.clone())),
            ("gen_ai.conversation.id", Value::from(trace.run.to_string())),
            ("cogn.module", Value::from(Some(trace.module.as_str()).filter(|module| !module.is_empty()))),
            ("cogn.policy", Value::from(trace.policy)),
            ("cogn.attempts", Value::from(trace.attempts.len())),
            ("error.type", Value::from(trace.code.clone())),
        ]),
    });
    if let Some(parent) = trace.parent {
        run["parentSpanId"] = Value::from(parent.span_id());
    }
    if let Some(code) = &trace.code {
        run["status"] = json!({"code": ERROR, "message": code});
    }
    let attempts = trace
        .attempts
        .iter()
        .map(|attempt| span_of(attempt, trace, context));
    std::iter::once(run).chain(attempts).collect()
}

/// The span name; a relayed call has no module.
fn name(module: &str) -> String {
    match module {
        "" => String::from("relay"),
        module => format!("run {module}"),
    }
}

/// The operation name of the GenAI conventions; operations that they do not define keep their name.
fn operation(trace: &Trace) -> &'static str {
    match trace.operation {
        Operation::ChatCompletions => "chat",
        other => other.as_str(),
    }
}

/// The provider name of the GenAI conventions; it differs from the kind only for gemini.
fn provider(kind: &str) -> &str {
    match kind {
        "gemini" => "gcp.gemini",
        kind => kind,
    }
}

fn span_of(attempt: &AttemptRecord, trace: &Trace, run: TraceContext) -> Value {
    let began_ms = trace.run.at_ms() + attempt.started_ms;
    let own = run.child(trace.run.seed().wrapping_add(u64::from(attempt.number)));
    let usage = |of: fn(&Usage) -> Option<u64>| attempt.usage.as_ref().and_then(of);
    let code = attempt.error.as_ref().map(|error| error.code);
    let mut span = json!({
        "traceId": run.trace_id(),
        "spanId": own.span_id(),
        "parentSpanId": run.span_id(),
        "name": format!("{} {}", operation(trace), attempt.model.as_deref().unwrap_or(&attempt.backend)),
        "kind": CLIENT,
        "startTimeUnixNano": nanos(began_ms),
        "endTimeUnixNano": nanos(began_ms + attempt.latency_ms),
        "attributes": attributes(&[
            ("gen_ai.operation.name", Value::from(operation(trace))),
            ("gen_ai.provider.name", Value::from(provider(&attempt.kind))),
            ("gen_ai.request.model", Value::from(trace.requested_model.clone())),
            ("gen_ai.response.model", Value::from(attempt.model.clone())),
            ("gen_ai.usage.input_tokens", Value::from(usage(|usage| usage.input_tokens))),
            ("gen_ai.usage.output_tokens", Value::from(usage(|usage| usage.output_tokens))),
            ("cogn.backend", Value::from(attempt.backend.clone())),
            ("cogn.attempt", Value::from(attempt.number)),
            ("cogn.outcome", Value::from(attempt.outcome.as_str())),
            ("cogn.first_token_ms", Value::from(attempt.first_token_ms)),
            ("error.type", Value::from(code)),
        ]),
    });
    if attempt.outcome == AttemptOutcome::Failed {
        span["status"] = json!({"code": ERROR, "message": code});
    }
    span
}

/// The body of one export request.
pub(super) fn message(service_name: &str, spans: &[&Value]) -> Value {
    let resource = attributes(&[("service.name", Value::from(service_name))]);
    let scope = json!({"name": "cogn", "version": env!("CARGO_PKG_VERSION")});
    json!({
        "resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{"scope": scope, "spans": spans}],
        }]
    })
}

/// OTLP attributes; null values are omitted.
fn attributes(pairs: &[(&str, Value)]) -> Value {
    let typed = |value: &Value| match value {
        Value::Null => None,
        // OTLP JSON encodes 64-bit integers as strings.
        Value::Number(number) => Some(json!({"intValue": number.to_string()})),
        Value::Bool(truth) => Some(json!({"boolValue": truth})),
        Value::String(text) => Some(json!({"stringValue": text})),
        other => Some(json!({"stringValue": other.to_string()})),
    };
    pairs
        .iter()
        .filter_map(|(key, value)| Some(json!({"key": key, "value": typed(value)?})))
        .collect()
}

fn nanos(ms: u64) -> String {
    (u128::from(ms) * 1_000_000).to_string()
}
