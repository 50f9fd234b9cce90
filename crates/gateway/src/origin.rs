//! Which pages and names may reach the server. A browser lets any page send requests to a server on the
//! same machine and hides only the answers; so a page that is not allowed is refused before anything
//! runs, and a server on loopback answers only to names that are its own.

use axum::http::header::{self, ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, request};
use module::Code;
use module::envelope::ErrorBody;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::mcp;
use crate::once::REPLAYED_HEADER;
use crate::reply::{Refusal, SESSION_HEADER};
use crate::settings::Settings;
use crate::state::Gateway;

/// Headers that pages may send beyond the usual ones.
const REQUEST_HEADERS: [&str; 31] = [
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "idempotency-key",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    mcp::SESSION,
    "openai-beta",
    "openai-organization",
    "openai-project",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-api-key",
    "x-cogn-validate",
    "x-cognitive-recovery-seq",
    "x-cognitive-recovery-session",
    "x-cognitive-response-mode",
    "x-cogn-resumable",
    "x-stainless-arch",
    "x-stainless-helper-method",
    "x-stainless-lang",
    "x-stainless-os",
    "x-stainless-package-version",
    "x-stainless-poll-helper",
    "x-stainless-retry-count",
    "x-stainless-runtime",
    "x-stainless-runtime-version",
    "x-stainless-timeout",
];

/// Answers the questions of browsers, by the settings of the moment.
pub(crate) fn cors(gateway: Gateway) -> CorsLayer {
    let allowed = move |origin: &HeaderValue, _: &request::Parts| is_listed(origin, &gateway.settings());
    let mut headers: Vec<HeaderName> = REQUEST_HEADERS.into_iter().map(HeaderName::from_static).collect();
    headers.extend([ACCEPT, AUTHORIZATION, CONTENT_TYPE]);
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(allowed))
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PATCH,
            Method::PUT,
            Method::DELETE,
        ])
        .allow_headers(headers)
        .expose_headers([
            HeaderName::from_static(SESSION_HEADER),
            HeaderName::from_static("x-cognitive-warning"),
            HeaderName::from_static(REPLAYED_HEADER),
            HeaderName::from_static(mcp::SESSION),
            HeaderName::from_static("x-cogn-run"),
            HeaderName::from_static("x-cogn-backend"),
            HeaderName::from_static("x-cogn-attempts"),
            HeaderName::from_static("x-cogn-cost-usd"),
            HeaderName::from_static("traceparent"),
            header::RETRY_AFTER,
        ])
        .max_age(std::time::Duration::from_secs(600))
}

/// Lets through what is not from a page elsewhere.
pub(crate) fn admit(headers: &HeaderMap, uri: &Uri, settings: &Settings) -> Result<(), Refusal> {
    let host = host(headers, uri);
    if !settings.hosts.is_empty() {
        let name = host.map(name_of).unwrap_or_default();
        let known = settings
            .hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name));
        // A request without a host is a tool's, not a browser's.
        if host.is_some() && !known {
            let body = ErrorBody::new(Code::E4007, format!("this server is not called `{name}`"));
            return Err(Refusal::new(
                body.suggest("call it by its address, or add the name to server.hosts"),
            ));
        }
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let own = host.is_some_and(|host| {
        let origin = origin.to_str().unwrap_or_default();
        origin
            .split_once("://")
            .is_some_and(|(_, authority)| authority == host)
    });
    if own || is_listed(origin, settings) {
        return Ok(());
    }
    let body = ErrorBody::new(Code::E4007, "pages from this origin may not call this server");
    Err(Refusal::new(
        body.suggest("add the origin to server.cors_origins"),
    ))
}

fn is_listed(origin: &HeaderValue, settings: &Settings) -> bool {
    settings
        .cors_origins
        .iter()
        .any(|listed| listed == "*" || listed.as_bytes() == origin.as_bytes())
}

/// HTTP/1 names the host in a header, HTTP/2 in the address of the request.
fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let header = headers.get(HOST).and_then(|value| value.to_str().ok());
    header.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str))
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::{admit, name_of};
    use crate::settings::Settings;
    use axum::http::{HeaderMap, HeaderValue, Uri};

    fn admitted(host: &str, origin: Option<&str>, settings: &Settings) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert("origin", HeaderValue::from_str(origin).unwrap());
        }
        admit(&headers, &Uri::from_static("/v1/modules"), settings).is_ok()
    }

    #[test]
    fn pages_and_names_are_let_in_as_the_settings_say() {
        let open = Settings::default();
        let closed = Settings {
            cors_origins: vec![String::from("https://app.example")],
            hosts: vec![String::from("localhost"), String::from("127.0.0.1")],
            ..Settings::default()
        };
        for (host, origin, by_open, by_closed) in [
            ("localhost:8787", None, true, true),
            ("evil.example:8787", None, true, false),
            ("LOCALHOST", None, true, true),
            ("localhost:8787", Some("http://localhost:8787"), true, true),
            ("localhost:8787", Some("http://localhost:3000"), false, false),
            ("localhost:8787", Some("https://app.example"), false, true),
            ("localhost:8787", Some("null"), false, false),
            ("evil.example", Some("http://evil.example"), true, false),
        ] {
            assert_eq!(admitted(host, origin, &open), by_open, "{host} {origin:?}");
            assert_eq!(admitted(host, origin, &closed), by_closed, "{host} {origin:?}");
        }
    }

    #[test]
    fn ports_are_not_part_of_names() {
        for (host, name) in [
            ("a:80", "a"),
            ("a", "a"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(name_of(host), name);
        }
    }
}
