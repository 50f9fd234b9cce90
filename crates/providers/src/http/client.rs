//! The HTTP clients: connections are pooled and shared by all back-ends with the same proxy and TLS options.
//! Proxies come from the configuration only; this crate reads no environment variables.

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, NoProxy};
use secrecy::{ExposeSecret, SecretString};

use super::plaintext::Plain;

/// The user agent.
pub(super) const AGENT: &str = concat!("cogn/", env!("CARGO_PKG_VERSION"));

#[derive(Clone, Debug)]
pub struct Client {
    /// Client with TLS and proxy support.
    pub(crate) reqwest: reqwest::Client,
    /// Plaintext client for endpoints that need neither. `None` if a proxy is configured.
    pub(super) plaintext: Option<Plain>,
}

/// Connection options of a back-end.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    pub connect_timeout: Option<Duration>,
    pub proxy: Option<Proxy>,
    /// PEM files with certificates that are trusted in addition to the system's.
    pub ca_pem: Vec<Vec<u8>>,
}

/// Proxy URLs with the schemes `http`, `https`, `socks5` and `socks5h`.
#[derive(Clone, Debug, Default)]
pub struct Proxy {
    /// For `http` URLs.
    pub http: Option<String>,
    /// For `https` URLs.
    pub https: Option<String>,
    /// Hosts, domains and addresses that are reached directly, separated by commas.
    pub except: String,
    /// `user:password`.
    pub credential: Option<SecretString>,
}

/// The client could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot set up the HTTP client: {0}")]
    Client(#[source] reqwest::Error),
    #[error("the proxy cannot be used: {0}")]
    Proxy(#[source] reqwest::Error),
    #[error("a certificate cannot be read: {0}")]
    Certificate(#[source] reqwest::Error),
    #[error("a certificate file contains no certificate")]
    NoCertificate,
}

impl Client {
    pub fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        let mut builder = reqwest::Client::builder()
            .redirect(Policy::none())
            .tcp_nodelay(true)
            .no_proxy()
            .user_agent(AGENT);
        if let Some(timeout) = options.connect_timeout {
            builder = builder.connect_timeout(timeout);
        }
        for proxy in options.proxy.iter().map(proxies) {
            for proxy in proxy.map_err(ClientError::Proxy)? {
                builder = builder.proxy(proxy);
            }
        }
        let mut trusted = Vec::new();
        for pem in &options.ca_pem {
            let found = Certificate::from_pem_bundle(pem).map_err(ClientError::Certificate)?;
            if found.is_empty() {
                return Err(ClientError::NoCertificate);
            }
            trusted.extend(found);
        }
        if !trusted.is_empty() {
            builder = builder.tls_certs_merge(trusted);
        }
        let proxied = options.proxy.as_ref().is_some_and(|proxy| proxy.http.is_some());
        Ok(Self {
            reqwest: builder.build().map_err(ClientError::Client)?,
            plaintext: (!proxied).then(|| Plain::new(options.connect_timeout)),
        })
    }
}

fn proxies(options: &Proxy) -> Result<Vec<reqwest::Proxy>, reqwest::Error> {
    let dressed = |proxy: reqwest::Proxy| {
        let proxy = proxy.no_proxy(NoProxy::from_string(&options.except));
        match &options.credential {
            Some(secret) => {
                let (user, password) = secret.expose_secret().split_once(':').unwrap_or_default();
                proxy.basic_auth(user, password)
            }
            None => proxy,
        }
    };
    let http = options.http.as_deref().map(reqwest::Proxy::http);
    let https = options.https.as_deref().map(reqwest::Proxy::https);
    let all = http.into_iter().chain(https);
    all.map(|proxy| proxy.map(dressed)).collect()
}
