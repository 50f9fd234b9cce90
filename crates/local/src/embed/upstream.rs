//! A sentence encoder as a back-end: what can be refused at once is, the rest is the worker's. Opening costs
//! nothing; weights are loaded with the first call.

use std::sync::Arc;

use engine::port::{UnaryResponse, Backend, EventStream, Upstream};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use ir::envelope::EmbeddingsRequest;
use ir::{Error, ErrorKind, Event, Feature, Payload, Phase, Request};

use super::files::EncoderFiles;
#[cfg(feature = "embed")]
use super::worker::Worker;
use crate::limits;

/// What the person who configures an encoder says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderOptions {
    /// The back-end's name.
    pub name: String,
    /// What the model is called; requests that name another do not come here.
    pub model: String,
    pub files: EncoderFiles,
    /// Calls that are worked on at once.
    pub at_once: usize,
    /// Calls that may wait.
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

/// One encoder, ready to be asked.
#[derive(Debug)]
pub struct Embedder {
    backend: Backend,
    options: EmbedderOptions,
    #[cfg(feature = "embed")]
    worker: Arc<Worker>,
}

impl Embedder {
    /// Loads nothing yet.
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

    /// What an encoder can do, for routing.
    pub fn features() -> Vec<Feature> {
        vec![Feature::Batch]
    }

    /// What can be refused without loading anything.
    fn admit<'r>(&self, request: &'r Request) -> Result<&'r EmbeddingsRequest, Error> {
        let name = &self.options.name;
        let unsupported = |message: String| Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
        let Payload::Embeddings(asked) = &request.payload else {
            return Err(unsupported(format!("back-end {name} only makes embeddings")));
        };
        let own = &self.options.model;
        if let Some(model) = asked.model.as_ref().filter(|model| !model.is_empty())
            && model != own
        {
            return Err(unsupported(format!("this encoder is {own}, not {model}")));
        }
        if asked.dimensions.is_some() {
            let message = format!("vectors of {own} have one length, and no other can be asked for");
            return Err(unsupported(message));
        }
        if asked.input.is_empty() {
            return Err(Error::invalid_request("there is no text to embed"));
        }
        let bytes: usize = asked.input.iter().map(String::len).sum();
        if asked.input.len() > limits::TEXTS_MAX || bytes > limits::TEXTS_BYTES_MAX {
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
        Ok(asked)
    }

    #[cfg(feature = "embed")]
    fn start(&self, asked: &EmbeddingsRequest) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        self.worker.clone().answer(asked.clone()).boxed()
    }

    #[cfg(not(feature = "embed"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the arithmetic")]
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
        let message = format!("back-end {} only makes embeddings", self.backend.name);
        let error = Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
        stream::iter([Event::Error { error }]).boxed()
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        match self.admit(&request) {
            Ok(asked) => self.start(asked),
            Err(error) => futures::future::ready(Err(error)).boxed(),
        }
    }
}
