//! The HTTP client: hyper's connections in hyper-util's pool, shared by all back-ends with the same proxy and
//! TLS options. Proxies come from the configuration only; this crate reads no environment variables.

mod connector;
mod proxy;
#[cfg(test)]
mod tests;
mod unsent_request;

use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
    USER_AGENT,
};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use ir::{Error, ErrorKind, Phase};
use percent_encoding::percent_decode_str;
use rustls_platform_verifier::Verifier;
use tokio_rustls::rustls;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use url::Url;

use self::connector::Connector;
pub use self::proxy::Proxy;
use self::unsent_request::CountedBody;
pub(super) use self::unsent_request::UnsentRequestGuard;
use super::request_body::RequestBody;
use super::response::HttpResponse;
use super::transport_error;
use crate::limits::{ANSWER_HEAD_BYTES_MAX, REQUEST_HEAD_BYTES_MAX};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("cogn/", env!("CARGO_PKG_VERSION")));
/// Idle timeouts of connections. Many servers close idle connections after five seconds (llama.cpp, uvicorn,
/// Node.js); a request that is sent at that moment is lost. Without TLS another connection costs little.
const PLAINTEXT_IDLE_MAX: Duration = Duration::from_secs(4);
const TLS_IDLE_MAX: Duration = Duration::from_secs(90);
/// Idle connections per host.
const IDLE_COUNT_MAX: usize = 1_024;

type Pool = legacy::Client<Connector, CountedBody>;

#[derive(Clone, Debug)]
pub struct Client {
    plaintext: Pool,
    tls: Pool,
    proxies: Arc<Matcher>,
}

/// Connection options of a back-end.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    pub connect_timeout: Option<Duration>,
    pub proxy: Option<Proxy>,
    /// PEM files with certificates that are trusted in addition to the system's.
    pub ca_pem: Vec<Vec<u8>>,
}

/// The client could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot set up the HTTP client: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the proxy cannot be used: {0}")]
    Proxy(String),
    #[error("a certificate cannot be read: {0}")]
    Certificate(#[source] pem::Error),
    #[error("a certificate file contains no certificate")]
    NoCertificate,
}

impl Client {
    pub fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        let proxies = Arc::new(proxy::matcher(options.proxy.as_ref())?);
        let connector = Connector::new(tls(&options.ca_pem)?, proxies.clone(), options.connect_timeout);
        Ok(Self {
            plaintext: pool(connector.clone(), PLAINTEXT_IDLE_MAX),
            tls: pool(connector, TLS_IDLE_MAX),
            proxies,
        })
    }

    pub(crate) async fn get(&self, url: &str, headers: HeaderMap) -> Result<HttpResponse, Error> {
        let content = RequestBody::Bytes(Bytes::new());
        self.send(Method::GET, url, headers, content).await
    }

    pub(super) async fn post(
        &self,
        url: &str,
        mut headers: HeaderMap,
        content: RequestBody,
    ) -> Result<HttpResponse, Error> {
        // Not every server accepts chunked encoding.
        headers.remove(TRANSFER_ENCODING);
        headers.insert(CONTENT_LENGTH, HeaderValue::from(content.size_bytes()));
        self.send(Method::POST, url, headers, content).await
    }

    /// Sends a request and waits for the response head. Redirects are not followed.
    async fn send(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        content: RequestBody,
    ) -> Result<HttpResponse, Error> {
        let uri = target(url, &mut headers)?;
        headers.entry(USER_AGENT).or_insert(AGENT);
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let is_tls = uri.scheme_str() == Some("https");
        // A proxy that forwards requests reads its credentials from each; others read them when connecting.
        if !is_tls
            && let Some(proxy) = self.proxies.intercept(&uri)
            && let Some(credentials) = proxy.basic_auth()
        {
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        if head_bytes(&headers) > REQUEST_HEAD_BYTES_MAX {
            return Err(unsendable("the head of the request is too large"));
        }
        let size_bytes = content.size_bytes();
        let mut request = Request::new(CountedBody::new(content.into_body(), size_bytes));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let pool = if is_tls { &self.tls } else { &self.plaintext };
        let unsent = UnsentRequestGuard::new(&mut request);
        let response = pool.request(request).await;
        let response = response.map_err(|error| transport_error::no_response(&error))?;
        // hyper may read more than the limit at once.
        if head_bytes(response.headers()) > ANSWER_HEAD_BYTES_MAX {
            return Err(transport_error::large_head());
        }
        Ok(HttpResponse::new(response, unsent))
    }
}

fn head_bytes(headers: &HeaderMap) -> usize {
    let lines = headers.iter();
    lines.map(|(name, value)| name.as_str().len() + value.len()).sum()
}

fn pool(connector: Connector, idle_timeout: Duration) -> Pool {
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle_timeout)
        .pool_max_idle_per_host(IDLE_COUNT_MAX)
        .http1_max_buf_size(ANSWER_HEAD_BYTES_MAX)
        .build(connector)
}

/// The URL without credentials; these are moved to the headers.
fn target(url: &str, headers: &mut HeaderMap) -> Result<Uri, Error> {
    let invalid =
        |error: &dyn std::fmt::Display| unsendable(&format!("the URL of the back-end is invalid: {error}"));
    let mut url = Url::parse(url).map_err(|error| invalid(&error))?;
    if let ("", None) = (url.username(), url.password()) {
        return url.as_str().parse().map_err(|error| invalid(&error));
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decoded(url.username());
    let password = decoded(url.password().unwrap_or_default());
    let credentials = BASE64_STANDARD.encode(format!("{user}:{password}"));
    if let Ok(mut value) = HeaderValue::from_str(&format!("Basic {credentials}")) {
        value.set_sensitive(true);
        headers.entry(AUTHORIZATION).or_insert(value);
    }
    // These fail only for URLs without a host, which are rejected below.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.as_str().parse().map_err(|error| invalid(&error))
}

fn unsendable(message: &str) -> Error {
    Error::new(ErrorKind::Network, Phase::BeforeSend, message)
}

fn tls(ca_pem: &[Vec<u8>]) -> Result<ClientConfig, ClientError> {
    let mut trusted = Vec::new();
    for pem in ca_pem {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = found.map_err(ClientError::Certificate)?;
        if found.is_empty() {
            return Err(ClientError::NoCertificate);
        }
        trusted.extend(found);
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = match trusted.is_empty() {
        true => Verifier::new(provider.clone())?,
        false => Verifier::new_with_extra_roots(trusted, provider.clone())?,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}
