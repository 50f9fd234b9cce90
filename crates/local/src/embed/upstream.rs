//! A sentence encoder as a back-end. Invalid requests are refused immediately; others go to the worker.
//! Creation is cheap; weights are loaded on the first call.

use std::future::ready;
use std::sync::Arc;

use engine::port::{Backend, EventStream, RawRequest, RawStream, UnaryResponse, Upstream};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use ir::envelope::EmbeddingsRequest;
use ir::{Error, ErrorKind, Event, Feature, Payload, Phase, Request};

use super::files::EncoderFiles;
#[cfg(feature = "embed")]
use super::worker::Worker;
use crate::limits;

/// Configuration of an encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderOptions {
    /// The back-end's name.
    pub name: String,
    /// The model name; requests for another model are refused.
    pub model: String,
    pub files: EncoderFiles,
    /// Concurrent calls.
    pub at_once: usize,
    /// Maximum number of queued calls.
    pub queue_max: usize,
}

impl EmbedderOptions {
    pub fn new(name: impl Into<String>, model: impl Into<String>, files: EncoderFiles) -> Self {
        Self {
            name: name.into(),
            model: model.into(),
            files,
            at_once: crate::options::default_threads(),
            queue_max: limits::QUEUE_MAX,
        }
    }
}

/// An encoder back-end.
#[derive(Debug)]
pub struct Embedder {
    backend: Backend,
    options: EmbedderOptions,
    #[cfg(feature = "embed")]
    worker: Arc<Worker>,
}

impl Embedder {
    /// Does not load the weights.
    pub fn new(options: EmbedderOptions) -> Self {
        Self {
            backend: Backend {
                name: options.name.clone(),
                kind: String::from("local"),
                model: Some(options.model.clone()),
            },
            #[cfg(feature = "embed")]
            worker: Arc::new(Worker::new(options.clone())),
            options,
        }
    }

    /// Features for routing.
    pub fn features() -> Vec<Feature> {
        vec![Feature::Batch]
    }

    /// Refuses requests that the encoder cannot serve, without loading it.
    fn admit<'r>(&self, request: &'r Request) -> Result<&'r EmbeddingsRequest, Error> {
        let name = &self.options.name;
        let unsupported = |message: String| Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
        let Payload::Embeddings(params) = &request.payload else {
            return Err(unsupported(format!("back-end {name} only supports embeddings")));
        };
        let own = &self.options.model;
        if let Some(model) = params.model.as_ref().filter(|model| !model.is_empty())
            && model != own
        {
            return Err(unsupported(format!("this encoder serves {own}, not {model}")));
        }
        if params.dimensions.is_some() {
            let message = format!("vectors of {own} have a fixed length; `dimensions` is not supported");
            return Err(unsupported(message));
        }
        if params.input.is_empty() {
            return Err(Error::invalid_request("no text to embed"));
        }
        let bytes: usize = params.input.iter().map(String::len).sum();
        if params.input.len() > limits::TEXTS_MAX || bytes > limits::TEXTS_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::ContextWindow,
                Phase::BeforeSend,
                format!(
                    "more than {} texts or {} bytes in one request",
                    limits::TEXTS_MAX,
                    limits::TEXTS_BYTES_MAX
                ),
            ));
        }
        Ok(params)
    }

    #[cfg(feature = "embed")]
    fn start(&self, params: &EmbeddingsRequest) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        self.worker.clone().answer(params.clone()).boxed()
    }

    #[cfg(not(feature = "embed"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    fn start(&self, _: &EmbeddingsRequest) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        let message = "this cogn was built without embeddings; build it with `--features local`";
        let error = Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message);
        futures::future::ready(Err(error)).boxed()
    }
}

impl Upstream for Embedder {
    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn stream(&self, _: Arc<Request>) -> EventStream {
        let message = format!("back-end {} only supports embeddings", self.backend.name);
        let error = Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
        stream::iter([Event::Error { error }]).boxed()
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        match self.admit(&request) {
            Ok(params) => self.start(params),
            Err(error) => futures::future::ready(Err(error)).boxed(),
        }
    }

    fn stream_raw(&self, _: &Arc<Request>, _: &Arc<RawRequest>) -> Option<RawStream> {
        None
    }

    fn supports_patches(&self) -> bool {
        false
    }

    fn count_request(&self, _: Arc<Request>) -> BoxFuture<'static, Option<u64>> {
        ready(None).boxed()
    }

    fn count_tokens(&self, _: &str) -> Option<usize> {
        None
    }
}
