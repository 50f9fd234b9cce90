//! Runs the encoder off the event loop. A bounded number of calls wait in a queue; a call whose caller
//! dropped it stops between two batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine::port::UnaryResponse;
use ir::envelope::{Embedding, EmbeddingVector, EmbeddingsRequest, EmbeddingsResponse};
use ir::media::Base64;
use ir::{Error, ErrorKind, Ext, Map, Phase, ResponsePayload, Usage};
use tokio::sync::Semaphore;

use super::model::Model;
use super::upstream::EmbedderOptions;
use crate::limits;

#[derive(Debug)]
pub(super) struct Worker {
    options: EmbedderOptions,
    model: Mutex<Option<Arc<Model>>>,
    /// A permit for every call, running or queued.
    permits: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl Worker {
    pub(super) fn new(options: EmbedderOptions) -> Self {
        let at_once = options.at_once.clamp(1, limits::AT_ONCE_MAX);
        Self {
            model: Mutex::new(None),
            permits: Arc::new(Semaphore::new(at_once + options.queue_max)),
            running: Arc::new(Semaphore::new(at_once)),
            options,
        }
    }

    pub(super) async fn answer(self: Arc<Self>, params: EmbeddingsRequest) -> Result<UnaryResponse, Error> {
        let full = |_| {
            let message = format!("the queue of the encoder {} is full", self.options.model);
            let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message);
            error.retry_after_ms = Some(limits::RETRY_AFTER_MS);
            error
        };
        let queue_permit = self.permits.clone().try_acquire_owned().map_err(full)?;
        let closed = |_| {
            Error::new(
                ErrorKind::Internal,
                Phase::BeforeSend,
                "the encoder has shut down",
            )
        };
        let run_permit = self.running.clone().acquire_owned().await.map_err(closed)?;
        let left = CancelFlag::default();
        let cancelled = left.0.clone();
        let inner = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            // The permits of a dropped call are released only when its computation has stopped.
            let _permits = (queue_permit, run_permit);
            inner.embed(&params, &cancelled)
        });
        work.await.unwrap_or_else(|_| {
            let message = "the encoder computation failed";
            Err(Error::new(ErrorKind::Internal, Phase::MidStream, message))
        })
    }

    fn model(&self) -> Result<Arc<Model>, Error> {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = &*model {
            return Ok(model.clone());
        }
        let loaded = Model::load(&self.options.files).map_err(|reason| {
            let message = format!("the encoder {} cannot be loaded: {reason}", self.options.model);
            Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message)
        })?;
        let loaded = Arc::new(loaded);
        *model = Some(loaded.clone());
        Ok(loaded)
    }

    fn embed(&self, params: &EmbeddingsRequest, cancelled: &AtomicBool) -> Result<UnaryResponse, Error> {
        let model = self.model()?;
        let mut tokens = Vec::with_capacity(params.input.len());
        for (position, text) in params.input.iter().enumerate() {
            let text = model.tokens(text).map_err(Error::invalid_request)?;
            if text.len() > model.shape.positions {
                let message = format!(
                    "text {position} has {} tokens; {} accepts at most {}",
                    text.len(),
                    self.options.model,
                    model.shape.positions
                );
                return Err(Error::new(ErrorKind::ContextWindow, Phase::BeforeSend, message));
            }
            tokens.push(text);
        }
        let base64 = params.encoding_format.as_deref() == Some("base64");
        let mut embeddings = Vec::with_capacity(tokens.len());
        for batch in batches(&tokens) {
            if cancelled.load(Ordering::Relaxed) {
                let message = "cancelled: the caller dropped the request";
                return Err(Error::new(ErrorKind::Cancelled, Phase::MidStream, message));
            }
            for vector in model.encode(batch) {
                let index = u64::try_from(embeddings.len()).unwrap_or(u64::MAX);
                embeddings.push(Embedding {
                    index,
                    vector: written(&vector, base64),
                    ext: Ext::default(),
                    rest: Map::new(),
                });
            }
        }
        let read = tokens.iter().map(Vec::len).sum::<usize>();
        let usage = Usage {
            input_tokens: u64::try_from(read).ok(),
            output_tokens: Some(0),
            ..Usage::default()
        };
        let payload = EmbeddingsResponse {
            model: Some(self.options.model.clone()),
            embeddings,
            usage: Some(usage.clone()),
            ext: Ext::default(),
            rest: Map::new(),
        };
        Ok(UnaryResponse {
            payload: ResponsePayload::Embeddings(payload),
            usage: Some(usage),
            adaptations: Vec::new(),
            raw: None,
        })
    }
}

/// Cancels the computation when the call is dropped.
#[derive(Debug, Default)]
struct CancelFlag(Arc<AtomicBool>);

impl Drop for CancelFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Splits texts in order into batches that form a matrix of bounded size.
fn batches(texts: &[Vec<u32>]) -> impl Iterator<Item = &[Vec<u32>]> {
    let mut rest = texts;
    std::iter::from_fn(move || {
        let mut rows = 0;
        let fits = |text: &&Vec<u32>| {
            rows += text.len();
            rows <= limits::ROWS_MAX
        };
        // A text longer than the bound is a batch of one.
        let taken = rest.iter().take_while(fits).count().max(1);
        let (batch, left) = rest.split_at_checked(taken)?;
        rest = left;
        Some(batch)
    })
}

/// Numbers in the shortest notation that preserves every bit, or the bits in base64.
fn written(vector: &[f32], base64: bool) -> EmbeddingVector {
    if base64 {
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        return EmbeddingVector::Base64(String::from(Base64::from_bytes(&bytes).as_str()));
    }
    let numbers = vector.iter().map(|number| {
        let shortest = number.to_string().parse().unwrap_or_else(|_| f64::from(*number));
        serde_json::Number::from_f64(shortest).unwrap_or_else(|| serde_json::Number::from(0))
    });
    EmbeddingVector::Numbers(numbers.collect())
}
