//! Usage: one record per attempt, aggregated as requested.

use axum::response::Response;
use engine::port::{DAY_MS, UsageFilter, UsageRow};
use module::Code;
use module::envelope::ErrorBody;
use serde::Deserialize;
use serde_json::{Value, json};
use tenancy::Scope;

use crate::auth::AuthenticatedCaller;
use crate::endpoint::{Endpoint, any_of_type, object, text};
use crate::extract::Query;
use crate::response::{self, ApiError};
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Endpoint> {
    let count = || json!({"type": ["integer", "null"]});
    let line = object(&[
        ("key", json!({"type": ["string", "null"]})),
        ("module", json!({"type": ["string", "null"]})),
        ("model", json!({"type": ["string", "null"]})),
        ("day_ms", json!({"type": ["integer", "null"]})),
        ("runs", any_of_type("integer", "Ended runs.")),
        ("attempts", any_of_type("integer", "Calls to back-ends.")),
        ("input_tokens", count()),
        ("output_tokens", count()),
        ("estimated_tokens", count()),
        (
            "unknown",
            any_of_type("integer", "Attempts without reported usage."),
        ),
    ]);
    let moment = json!({"type": "integer", "minimum": 0});
    vec![
        Endpoint::get("/v1/usage", "usage", usage)
            .summary("Returns usage, aggregated per key, module, model and day.")
            .query(
                "by",
                "Comma-separated list of key, module, model and day. Default: all of them.",
                text(),
            )
            .query(
                "since_ms",
                "Runs that ended at this moment or later.",
                moment.clone(),
            )
            .query("until_ms", "Runs that ended before this moment.", moment)
            .returns(object(&[("lines", json!({"type": "array", "items": line}))]))
            .error_codes(&[Code::E1001, Code::E1004]),
    ]
}

#[derive(Debug, Deserialize)]
struct UsageQuery {
    by: Option<String>,
    since_ms: Option<u64>,
    until_ms: Option<u64>,
}

async fn usage(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    Query(query): Query<UsageQuery>,
) -> Result<Response, ApiError> {
    caller.require(Scope::Usage)?;
    let mut filter = UsageFilter {
        since_ms: query.since_ms,
        until_ms: query.until_ms,
        ..UsageFilter::default()
    };
    let by = query.by.as_deref().unwrap_or("key,module,model,day");
    for word in by.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "key" => filter.by_client = true,
            "module" => filter.by_module = true,
            "model" => filter.by_model = true,
            "day" => filter.by_day = true,
            _ => {
                let error = ErrorBody::new(Code::E1004, format!("unknown aggregation `{word}`"));
                return Err(ApiError::new(
                    error.detail("allowed", ["key", "module", "model", "day"].as_slice()),
                ));
            }
        }
    }
    let lines = gateway.archive.usage(Some(&caller.tenant), &filter).await;
    let lines = lines.map_err(engine::Error::from)?;
    let explain = format!("{} lines", lines.len());
    let lines: Vec<Value> = lines.iter().map(value).collect();
    Ok(response::resource(&explain, json!({"lines": lines})))
}

fn value(line: &UsageRow) -> Value {
    json!({
        "key": line.client,
        "module": line.module,
        "model": line.model,
        "day_ms": line.day.map(|day| day.saturating_mul(DAY_MS)),
        "runs": line.runs,
        "attempts": line.attempts,
        "input_tokens": line.input_tokens,
        "output_tokens": line.output_tokens,
        "estimated_tokens": line.estimated_tokens,
        "unknown": line.unknown,
    })
}
