//! The embedded model as a back-end. Creation is cheap: weights are loaded on the first call, on a
//! dedicated thread, where calls wait in a bounded queue. That thread detects a dropped stream between two
//! tokens.

use std::future::ready;
use std::sync::Arc;

use engine::port::{
    Backend, EventStream, RawRequest, RawStream, UnaryResponse, Upstream, unsupported_operation,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use ir::{Error, ErrorKind, Event, Feature, Phase, Request};

use crate::Options;

/// A back-end for one GGUF file.
#[derive(Debug)]
pub struct LocalUpstream {
    backend: Backend,
    #[cfg(feature = "llama")]
    worker: Arc<crate::worker::Worker>,
}

impl LocalUpstream {
    /// Does not load the weights. Back-ends with the same file and the same settings share one loaded model.
    pub fn new(options: &Options) -> Self {
        Self {
            backend: Backend {
                name: options.name.clone(),
                kind: String::from("local"),
                model: Some(options.model.clone()),
            },
            #[cfg(feature = "llama")]
            worker: crate::worker::Worker::shared(options),
        }
    }

    /// Features for routing.
    pub fn features() -> Vec<Feature> {
        vec![
            Feature::Stream,
            Feature::JsonSchema,
            Feature::SystemRole,
            Feature::Seed,
        ]
    }

    #[cfg(feature = "llama")]
    fn start(&self, request: Arc<Request>) -> Result<EventStream, Error> {
        let mut answer = AnswerStream {
            events: self.worker.submit(request)?,
            _worker: self.worker.clone(),
        };
        Ok(stream::poll_fn(move |context| answer.events.poll_recv(context)).boxed())
    }

    #[cfg(not(feature = "llama"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the runtime")]
    fn start(&self, _: Arc<Request>) -> Result<EventStream, Error> {
        let message = "this cogn was built without the embedded model; build it with `--features local`";
        Err(Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message))
    }
}

/// A running call. It keeps the worker alive. The receiver is dropped before the worker: dropping the
/// worker waits for the running call, which ends because its receiver is gone.
#[cfg(feature = "llama")]
struct AnswerStream {
    events: tokio::sync::mpsc::Receiver<Event>,
    _worker: Arc<crate::worker::Worker>,
}

impl Upstream for LocalUpstream {
    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        let unsupported =
            |message: String| failed(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
        let Some(chat) = request.as_chat() else {
            let operation = request.operation().as_str();
            return unsupported(format!("embedded models do not support {operation}"));
        };
        let own = self.backend.model.as_deref().unwrap_or_default();
        match chat.model.as_deref() {
            Some(requested) if !requested.is_empty() && requested != own => {
                unsupported(format!("this back-end serves {own}, not {requested}"))
            }
            // The grammar of a schema is built by recursion, under the limits of all other schemas.
            _ => match engine::admit_schemas(chat) {
                Ok(()) => self.start(request).unwrap_or_else(failed),
                Err(body) => failed(Error::new(
                    ErrorKind::InvalidRequest,
                    Phase::BeforeSend,
                    body.message,
                )),
            },
        }
    }

    #[cfg(feature = "llama")]
    fn count_request(&self, request: Arc<Request>) -> BoxFuture<'static, Option<u64>> {
        let worker = self.worker.clone();
        let counting = async move {
            // The first call reads the vocabulary from the file.
            let counted = tokio::task::spawn_blocking(move || worker.count_prompt(request.as_chat()?));
            u64::try_from(counted.await.ok()??).ok()
        };
        Box::pin(counting)
    }

    #[cfg(feature = "llama")]
    fn count_tokens(&self, text: &str) -> Option<usize> {
        self.worker.count_tokens(text)
    }

    fn stream_raw(&self, _: &Arc<Request>, _: &Arc<RawRequest>) -> Option<RawStream> {
        None
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        ready(Err(unsupported_operation(&self.backend, &request))).boxed()
    }

    fn supports_patches(&self) -> bool {
        false
    }

    #[cfg(not(feature = "llama"))]
    fn count_request(&self, _: Arc<Request>) -> BoxFuture<'static, Option<u64>> {
        ready(None).boxed()
    }

    #[cfg(not(feature = "llama"))]
    fn count_tokens(&self, _: &str) -> Option<usize> {
        None
    }
}

fn failed(error: Error) -> EventStream {
    stream::iter([Event::Error { error }]).boxed()
}
