//! The API description: as OpenAPI document and as HTML page.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::operations as all;
use crate::endpoint::{Endpoint, document, page};
use crate::mcp;
use crate::state::Gateway;

/// Rendered once; it does not depend on settings.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) json: String,
    page: String,
}

impl Default for Description {
    fn default() -> Self {
        let mut document = document(&all());
        document["paths"][mcp::PATH] = mcp::described();
        let mut json = serde_json::to_string_pretty(&document).unwrap_or_default();
        json.push('\n');
        Self {
            json,
            page: page(&document),
        }
    }
}

pub(super) fn operations() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/openapi.json", "openapi", openapi)
            .summary("Returns this description.")
            .returns_document("application/json"),
        Endpoint::get("/docs", "docs", docs)
            .summary("Returns this description as an HTML page.")
            .returns_document("text/html"),
    ]
}

async fn openapi(gateway: Gateway) -> Response {
    let body = gateway.description.json.clone();
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

async fn docs(gateway: Gateway) -> Response {
    let headers = [
        (CONTENT_TYPE.as_str(), "text/html; charset=utf-8"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'unsafe-inline'",
        ),
    ];
    (headers, gateway.description.page.clone()).into_response()
}

/// The OpenAPI document, as served and as checked in.
pub fn openapi_document() -> String {
    Description::default().json
}
