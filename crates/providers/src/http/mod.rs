//! Back-ends that are reached over HTTP. A vendor's file says where to post, how to sign and which dialect
//! is spoken; everything else is here, once: time-outs, limits, errors, and the stream itself. Redirects are
//! never followed, because a key must not travel to an address that nobody configured.

mod answer;
mod client;
mod request;

use std::sync::Arc;
use std::time::Duration;

use engine::port::{Backend, Events, Upstream};
use ir::{Dialect, Feature, Request};
use secrecy::SecretString;

pub use client::{Client, ClientError};

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
pub(crate) struct Vendor {
    pub(crate) kind: &'static str,
    pub(crate) dialect: Dialect,
    /// What follows the base URL.
    pub(crate) path: &'static str,
    /// The header that carries the key, and what stands before it there.
    pub(crate) key_header: (&'static str, &'static str),
    /// Headers that every call needs.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// One instance of a vendor's API.
#[derive(Debug)]
pub struct Http {
    backend: Backend,
    vendor: Vendor,
    client: Client,
    options: HttpOptions,
}

/// What the person who configures an instance says about it.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    pub name: String,
    pub base_url: String,
    /// The only model it answers with.
    pub model: Option<String>,
    pub key: Option<SecretString>,
    pub features: Vec<Feature>,
    pub timeouts: Timeouts,
}

impl Http {
    pub(crate) fn new(vendor: Vendor, client: Client, options: HttpOptions) -> Self {
        let backend = Backend {
            name: options.name.clone(),
            kind: String::from(vendor.kind),
            model: options.model.clone(),
        };
        Self {
            backend,
            vendor,
            client,
            options,
        }
    }
}

impl Upstream for Http {
    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn open(&self, request: Arc<Request>) -> Events {
        match request::prepare(&self.vendor, &self.options, &request) {
            Ok(prepared) => answer::events(
                self.client.clone(),
                prepared,
                self.vendor.dialect,
                self.options.timeouts,
            ),
            Err(error) => answer::failed(error),
        }
    }
}
