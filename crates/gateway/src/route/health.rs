//! Whether the process answers at all.

use axum::response::Response;
use serde_json::json;

use crate::reply;

pub(super) async fn alive() -> Response {
    reply::resource("the server answers", json!({"status": "alive"}))
}
