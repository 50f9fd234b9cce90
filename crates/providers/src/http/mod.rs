//! Back-ends over HTTP. A vendor's file defines the path, the authentication and the dialect; everything
//! else is here, once: timeouts, limits, errors, and streaming. Redirects are not followed, because the key
//! must only be sent to the configured URL.

mod adapt;
mod body;
mod client;
mod count_tokens;
mod models;
mod passthrough;
mod patch;
mod raw_tap;
mod request;
mod request_body;
mod response;
mod response_stream;
mod transport_error;
mod unary;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::port::{Backend, EventStream, RawRequest, RawStream, UnaryResponse, Upstream};
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::header::HeaderMap;
use ir::{ChatRequest, Dialect, Error, ErrorKind, Feature, Operation, Payload, Request};
use secrecy::SecretString;
use spill::SpillStore;
use tokio::sync::OnceCell;
use url::Url;

pub(crate) use body::collect;
pub use client::{Client, ClientError, ClientOptions, Proxy};

/// Timeouts per stage: a slow first byte and an idle stream are limited separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub first_byte: Duration,
    pub idle: Duration,
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            first_byte: seconds(60),
            idle: seconds(60),
            total: seconds(300),
        }
    }
}

/// The parts that a vendor's file defines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VendorSpec {
    pub(crate) kind: &'static str,
    pub(crate) dialect: Dialect,
    /// The path after the base URL.
    pub(crate) path: fn(&ChatRequest) -> String,
    /// Dialect and path of a unary operation, by its payload and model; `None` if the vendor does not
    /// support it.
    pub(crate) whole: fn(&Payload, &str) -> Option<(Dialect, String)>,
    pub(crate) models: ModelList,
    /// The header of the key, and the prefix of its value.
    pub(crate) key_header: (&'static str, &'static str),
    /// Headers that every call requires.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// The models endpoint of a vendor, and how its response is decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelList {
    pub(crate) path: &'static str,
    pub(crate) list: &'static str,
    pub(crate) name: &'static str,
}

/// One instance of a vendor's API.
#[derive(Clone, Debug)]
pub struct HttpUpstream {
    backend: Backend,
    inner: Arc<HttpInner>,
}

#[derive(Debug)]
struct HttpInner {
    vendor: VendorSpec,
    client: Client,
    options: HttpOptions,
    /// Host and port, for messages: the rest of a URL may contain secrets.
    address: String,
    /// The only model of the server, once it was listed.
    only_model: OnceCell<String>,
    /// The headers of every call, once they were built.
    headers: OnceLock<Result<HeaderMap, Error>>,
}

impl HttpInner {
    /// Adds the name and the address of this back-end to an error of the transport or the server. The message
    /// of a provider about the request itself is for the client, so it stays as it is.
    fn named(&self, mut error: Error) -> Error {
        let kinds = [
            ErrorKind::Network,
            ErrorKind::Timeout,
            ErrorKind::Upstream,
            ErrorKind::InvalidResponse,
            ErrorKind::AnswerTooLarge,
            ErrorKind::Auth,
        ];
        if kinds.contains(&error.kind) {
            let (name, address) = (&self.options.name, &self.address);
            error.message = format!("back-end `{name}` at {address}: {}", error.message);
        }
        error
    }

    fn headers(&self) -> Result<HeaderMap, Error> {
        self.headers
            .get_or_init(|| request::headers(&self.vendor, &self.options))
            .clone()
    }
}

/// The configuration of an instance.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    pub name: String,
    pub base_url: String,
    /// The only model that it serves.
    pub model: Option<String>,
    /// The model for requests that name none.
    pub default_model: Option<String>,
    pub key: Option<SecretString>,
    /// Supported operations.
    pub operations: BTreeSet<Operation>,
    /// Supported features; no other is used.
    pub features: BTreeSet<Feature>,
    pub timeouts: Timeouts,
    /// Headers that every call carries.
    pub headers: BTreeMap<String, String>,
    /// Spill store for the images and audio that it returns.
    pub spill: SpillStore,
}

impl HttpUpstream {
    pub(crate) fn new(vendor: VendorSpec, client: Client, options: HttpOptions) -> Self {
        let backend = Backend {
            name: options.name.clone(),
            kind: String::from(vendor.kind),
            model: options.model.clone().or_else(|| options.default_model.clone()),
        };
        let inner = HttpInner {
            vendor,
            client,
            address: address(&options.base_url),
            options,
            only_model: OnceCell::new(),
            headers: OnceLock::new(),
        };
        Self {
            backend,
            inner: Arc::new(inner),
        }
    }

    /// The same instance with other declared features.
    #[must_use]
    pub fn declared(&self, features: BTreeSet<Feature>) -> Self {
        let inner = &self.inner;
        let options = HttpOptions {
            features,
            ..inner.options.clone()
        };
        Self::new(inner.vendor, inner.client.clone(), options)
    }

    pub fn name(&self) -> &str {
        &self.backend.name
    }

    /// Host and port of the server.
    pub fn address(&self) -> &str {
        &self.inner.address
    }

    /// The models that the server lists.
    pub async fn models(&self) -> Result<Vec<String>, Error> {
        let listed = models::list(&self.inner).await;
        listed.map_err(|error| self.inner.named(error))
    }
}

/// `host:port` of a URL; the port is omitted if it is the default one.
fn address(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let shown = parsed.as_ref().and_then(|url| {
        let host = url.host_str()?;
        Some(
            url.port()
                .map_or_else(|| String::from(host), |port| format!("{host}:{port}")),
        )
    });
    shown.unwrap_or_else(|| String::from("an invalid address"))
}

impl Upstream for HttpUpstream {
    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn supports_patches(&self) -> bool {
        true
    }

    fn count_request(&self, request: Arc<Request>) -> BoxFuture<'static, Option<u64>> {
        count_tokens::count(self.inner.clone(), request).boxed()
    }

    fn count_tokens(&self, _: &str) -> Option<usize> {
        None
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        response_stream::events(self.inner.clone(), request)
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        let inner = self.inner.clone();
        async move {
            let answer = unary::answer(inner.clone(), request).await;
            answer.map_err(|error| inner.named(error))
        }
        .boxed()
    }

    fn stream_raw(&self, request: &Arc<Request>, verbatim: &Arc<RawRequest>) -> Option<RawStream> {
        let forwarded = passthrough::passthrough_request(&self.inner, request, verbatim)?;
        Some(response_stream::pieces(self.inner.clone(), forwarded))
    }
}
