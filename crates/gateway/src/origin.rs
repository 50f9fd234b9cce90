//! Origin and host checks. A browser lets any page send requests to a server on the same machine and hides
//! only the responses; so a request of a page that is not allowed is refused before anything runs, and a
//! server on loopback accepts only its own host names.

use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, request};
use module::Code;
use module::envelope::ErrorBody;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::headers;
use crate::idempotency::REPLAYED_HEADER;
use crate::mcp;
use crate::response::ApiError;
use crate::settings::Settings;
use crate::state::Gateway;

/// Request headers that pages may send beyond the usual ones.
const REQUEST_HEADERS: [&str; 32] = [
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
    "x-cogn-degradation",
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

/// Answers preflight requests from the current settings.
pub(crate) fn cors(gateway: Gateway) -> CorsLayer {
    let allowed =
        move |origin: &HeaderValue, _: &request::Parts| is_listed(origin, gateway.current().settings());
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
        .expose_headers(exposed())
        .max_age(std::time::Duration::from_secs(600))
}

/// Response headers that pages may read.
fn exposed() -> Vec<HeaderName> {
    let others = [REPLAYED_HEADER, mcp::SESSION, "traceparent"];
    let named = headers::OF_ANSWERS.into_iter().chain(others);
    named.map(HeaderName::from_static).chain([RETRY_AFTER]).collect()
}

/// Refuses requests with an unknown host or from an origin that is not allowed.
pub(crate) fn admit(headers: &HeaderMap, uri: &Uri, settings: &Settings) -> Result<(), ApiError> {
    let host = host(headers, uri);
    if !settings.hosts.is_empty() {
        let name = host.map(name_of).unwrap_or_default();
        let known = settings
            .hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name));
        // A request without a host is not from a browser.
        if host.is_some() && !known {
            let body = ErrorBody::new(Code::E4007, format!("host `{name}` is not allowed"));
            return Err(ApiError::new(body.suggest(
                "use the address of the server, or add the name to server.hosts",
            )));
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
    let body = ErrorBody::new(Code::E4007, "this origin is not allowed");
    Err(ApiError::new(
        body.suggest("add the origin to server.cors_origins"),
    ))
}

fn is_listed(origin: &HeaderValue, settings: &Settings) -> bool {
    settings
        .cors_origins
        .iter()
        .any(|listed| listed == "*" || listed.as_bytes() == origin.as_bytes())
}

/// HTTP/1 sends the host in a header, HTTP/2 in the request target.
fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let header = headers.get(HOST).and_then(|value| value.to_str().ok());
    header.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str))
}

/// The host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::{REQUEST_HEADERS, admit, exposed, name_of};
    use crate::settings::Settings;
    use axum::http::{HeaderMap, HeaderValue, Uri};

    /// Every header of this server named in the sources of this crate, in any case.
    fn named_in(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                named_in(&path, names);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap().to_lowercase();
                for start in ["\"x-cogn-", "\"x-cognitive-"] {
                    names.extend(text.split(start).skip(1).filter_map(|rest| {
                        let (end, _) = rest.split_once('"')?;
                        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                        let whole = !end.is_empty() && end.bytes().all(is_name);
                        whole.then(|| format!("{}{end}", start.trim_start_matches('"')))
                    }));
                }
            }
        }
    }

    #[test]
    fn every_own_header_is_allowed_or_exposed_in_cors() {
        let mut names = BTreeSet::new();
        named_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
        assert!(names.len() > 10, "{names:?}");
        let exposed = exposed();
        for name in &names {
            let read = exposed.iter().any(|one| one == name.as_str());
            let sent = REQUEST_HEADERS.contains(&name.as_str());
            assert!(
                read != sent,
                "{name} belongs to OF_ANSWERS or to REQUEST_HEADERS, and to one of them"
            );
        }
        // The reverse: every exposed header is used.
        for name in crate::headers::OF_ANSWERS {
            assert!(names.contains(name), "{name}");
        }
    }

    fn admitted(host: &str, origin: Option<&str>, settings: &Settings) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert("origin", HeaderValue::from_str(origin).unwrap());
        }
        admit(&headers, &Uri::from_static("/v1/modules"), settings).is_ok()
    }

    #[test]
    fn admits_configured_origins_and_hosts() {
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
    fn host_name_excludes_port() {
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
