//! The page at `/`: what this server is and where its documents are. It is public, so it names no modules,
//! back-ends or folders.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::response;

/// Paths with what they are.
const LINKS: [(&str, &str); 6] = [
    ("/docs", "the HTTP API as a page"),
    ("/openapi.json", "the same as an OpenAPI document"),
    ("/v1/modules", "the modules"),
    ("/v1/models", "the models, also modules as module:NAME"),
    ("/v1/capabilities", "the capabilities of this server"),
    ("/readyz", "whether the server accepts requests"),
];

pub(super) fn operations() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/", "root", root)
            .summary("Says what this server is, as a page for browsers and as an envelope for programs.")
            .returns_one_of(&["application/json", "text/html"]),
    ]
}

async fn root(headers: HeaderMap) -> Response {
    let mut response = match wants_html(&headers) {
        true => page(),
        false => {
            let links = LINKS
                .iter()
                .map(|(path, about)| (String::from(*path), Value::from(*about)));
            let data = json!({
                "name": "cogn",
                "version": env!("CARGO_PKG_VERSION"),
                "links": links.collect::<serde_json::Map<_, _>>(),
            });
            response::resource("this is a cogn server", data)
        }
    };
    let vary = axum::http::HeaderValue::from_static("accept");
    response.headers_mut().insert(VARY, vary);
    response
}

/// Browsers name `text/html`; other clients accept anything or JSON.
fn wants_html(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter();
    let mut ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim());
    ranges.any(|range| range.eq_ignore_ascii_case("text/html"))
}

fn page() -> Response {
    let rows = LINKS.map(|(path, about)| format!("<li><a href=\"{path}\">{path}</a>: {about}</li>"));
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>cogn</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem}}</style>\
         <h1>cogn {}</h1><p>This server runs AI tasks as contracts.</p><ul>{}</ul></html>\n",
        env!("CARGO_PKG_VERSION"),
        rows.concat()
    );
    let headers = [
        (CONTENT_TYPE.as_str(), "text/html; charset=utf-8"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'unsafe-inline'",
        ),
    ];
    (headers, html).into_response()
}
