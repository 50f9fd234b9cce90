//! Back-ends that are reached over HTTP. A vendor's file says where to post, how to sign and which dialect
//! is spoken; everything else is here, once: time-outs, limits, errors, and the stream itself. Redirects are
//! never followed, because a key must not travel to an address that nobody configured.

mod adapt;
mod response_stream;
mod body;
mod client;
mod count_tokens;
mod transport_error;
mod passthrough;
mod models;
mod outgoing;
mod patch;
mod plaintext;
mod response;
mod request;
mod transport;
mod raw_tap;
mod unary;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::Depot;
use engine::port::{UnaryResponse, Backend, EventStream, RawStream, Upstream, RawRequest};
use futures::FutureExt;
use futures::future::BoxFuture;
use ir::{ChatRequest, Dialect, Error, Feature, Operation, Payload, Request};
use reqwest::header::HeaderMap;
use secrecy::SecretString;
use tokio::sync::OnceCell;

use self::response_stream::EventFilter;
use self::transport::ResolvedEndpoint;
pub use client::{Client, ClientError, ClientOptions, Proxy};

/// How long each stage may take. They are apart so that a slow first word and a silent stream differ.
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

/// What a vendor's file fills in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VendorSpec {
    pub(crate) kind: &'static str,
    pub(crate) dialect: Dialect,
    /// What follows the base URL.
    pub(crate) path: fn(&ChatRequest) -> String,
    /// The same for an operation that answers in one piece, by its payload and model, with the dialect in which
    /// it is asked; `None` where the vendor has no such operation.
    pub(crate) whole: fn(&Payload, &str) -> Option<(Dialect, String)>,
    pub(crate) models: ModelList,
    /// The header that carries the key, and what stands before it there.
    pub(crate) key_header: (&'static str, &'static str),
    /// Headers that every call needs.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// Where a vendor tells its models, and how the answer is read.
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
    /// The one model that the server has, once it was asked.
    only_model: OnceCell<String>,
    /// What every call carries, once it was put together.
    headers: OnceLock<Result<HeaderMap, Error>>,
    /// The way to the address that was asked first, and most have no other.
    route: OnceLock<ResolvedEndpoint>,
}

impl HttpInner {
    fn headers(&self) -> Result<HeaderMap, Error> {
        self.headers
            .get_or_init(|| request::headers(&self.vendor, &self.options))
            .clone()
    }
}

/// What the person who configures an instance says about it.
#[derive(Clone, Debug, Default)]
pub struct HttpOptions {
    pub name: String,
    pub base_url: String,
    /// The only model it answers with.
    pub model: Option<String>,
    /// The model it answers with where a request names none.
    pub default_model: Option<String>,
    pub key: Option<SecretString>,
    /// What can be asked of it.
    pub operations: BTreeSet<Operation>,
    /// What it can do; nothing else is used.
    pub features: BTreeSet<Feature>,
    pub timeouts: Timeouts,
    /// Headers that every call carries.
    pub headers: BTreeMap<String, String>,
    /// Where pictures and sound go that it answers with.
    pub depot: Depot,
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
            options,
            only_model: OnceCell::new(),
            headers: OnceLock::new(),
            route: OnceLock::new(),
        };
        Self {
            backend,
            inner: Arc::new(inner),
        }
    }

    /// The same instance, trusted to do other things.
    #[must_use]
    pub fn declared(&self, features: BTreeSet<Feature>) -> Self {
        let inner = &self.inner;
        let options = HttpOptions {
            features,
            ..inner.options.clone()
        };
        Self::new(inner.vendor, inner.client.clone(), options)
    }

    /// The models that the server says it has.
    pub async fn models(&self) -> Result<Vec<String>, Error> {
        models::list(&self.inner).await
    }
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

    fn stream(&self, request: Arc<Request>) -> EventStream {
        response_stream::events(self.inner.clone(), request, EventFilter::All)
    }

    fn stream_text(&self, request: Arc<Request>) -> EventStream {
        response_stream::events(self.inner.clone(), request, EventFilter::TextOnly)
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        unary::answer(self.inner.clone(), request).boxed()
    }

    fn stream_raw(&self, request: &Arc<Request>, verbatim: &Arc<RawRequest>) -> Option<RawStream> {
        let forwarded = passthrough::passthrough_request(&self.inner, request, verbatim)?;
        Some(response_stream::pieces(self.inner.clone(), forwarded))
    }
}
