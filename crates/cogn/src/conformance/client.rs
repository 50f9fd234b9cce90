//! HTTP requests to the server under test. A body is read to its end, until the check has enough of it, or
//! until the timeout; then the connection is dropped.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use module::conformance::server::{Method, ServerRequest, ServerResponse, Transport};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};

use super::{limits, websocket};
use crate::output::hinted;

pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    key: Option<SecretString>,
    patience: Duration,
}

impl Client {
    pub(crate) fn new(url: &str, key: Option<SecretString>, patience: Duration) -> Result<Self> {
        let wrong = || {
            hinted(
                format!("`{url}` is not a valid server URL"),
                "use a URL such as http://127.0.0.1:8787",
            )
        };
        let mut base = Url::parse(url).map_err(|_| wrong())?;
        if !["http", "https"].contains(&base.scheme()) || base.host_str().is_none() {
            return Err(wrong());
        }
        base.set_query(None);
        base.set_fragment(None);
        let http = reqwest::Client::builder()
            .redirect(Policy::none())
            .user_agent(concat!("cogn/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("cannot set up HTTP")?;
        Ok(Self {
            http,
            base,
            key,
            patience,
        })
    }

    /// The URL for output: without user name and password.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.base.clone();
        url.set_username("").ok();
        url.set_password(None).ok();
        String::from(url.as_str().trim_end_matches('/'))
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let key = self.key.as_ref()?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Sends a request and returns the response, or why there is none.
    pub(crate) async fn send(&self, ask: &ServerRequest) -> Result<ServerResponse, String> {
        let work = async {
            match ask.over {
                Transport::Http => self.exchange(ask).await,
                Transport::Socket => websocket::exchange(self, ask).await,
            }
        };
        match tokio::time::timeout(self.patience, work).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("timed out after {} ms", self.patience.as_millis())),
        }
    }

    async fn exchange(&self, ask: &ServerRequest) -> Result<ServerResponse, String> {
        let response = self.request(ask).send().await.map_err(|error| reason(&error))?;
        let headers = response.headers().iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (String::from(name.as_str()), value)
        });
        let mut answer = ServerResponse {
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: Vec::new(),
        };
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            answer
                .body
                .extend_from_slice(&piece.map_err(|error| reason(&error))?);
            if answer.body.len() > limits::ANSWER_BYTES_MAX {
                return Err(format!("the answer exceeds {} bytes", limits::ANSWER_BYTES_MAX));
            }
            if ask.is_enough(&answer.body) {
                break;
            }
        }
        Ok(answer)
    }

    fn request(&self, ask: &ServerRequest) -> RequestBuilder {
        let url = self.url(&ask.path);
        let mut request = match ask.method {
            Method::Get => self.http.get(url),
            Method::Post => self.http.post(url),
        };
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        if let Some(value) = self.authorization() {
            request = request.header(AUTHORIZATION, value);
        }
        match &ask.body {
            Some(body) => request.body(body.to_string()),
            None => request,
        }
    }
}

/// The innermost cause, which is the most specific one: `connection refused`.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
