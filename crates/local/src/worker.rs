//! The thread that owns a model. Calls wait in a bounded queue and are answered one at a time: on a CPU two
//! concurrent answers take twice as long each. The thread loads the weights on the first call, and ends
//! when the worker is dropped.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};

use ir::{ChatRequest, Error, ErrorKind, Event, Phase, Request};
use tokio::sync::mpsc;

use crate::model::{Model, Tokenizer};
use crate::prompt_cache::CachedContext;
use crate::{Options, generate, limits, prompt};

/// Key of a loaded model: file, context, threads and queue length.
type ModelKey = (PathBuf, u32, usize, usize);

static LOADED: LazyLock<Mutex<HashMap<ModelKey, Weak<Worker>>>> = LazyLock::new(Mutex::default);

#[derive(Debug)]
pub(crate) struct Worker {
    options: Options,
    tokenizer: OnceLock<Option<Tokenizer>>,
    /// Started on the first call; `None` while the worker is dropped.
    thread: Mutex<Option<Thread>>,
}

#[derive(Debug)]
struct Thread {
    jobs: SyncSender<Job>,
    handle: JoinHandle<()>,
}

#[derive(Debug)]
struct Job {
    request: Arc<Request>,
    events: mpsc::Sender<Event>,
}

impl Worker {
    pub(crate) fn shared(options: &Options) -> Arc<Self> {
        let path = std::fs::canonicalize(&options.path).unwrap_or_else(|_| options.path.clone());
        let identity = (path, options.context_tokens, options.threads, options.queue_max);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|_, worker| worker.strong_count() > 0);
        if let Some(worker) = loaded.get(&identity).and_then(Weak::upgrade) {
            return worker;
        }
        let worker = Arc::new(Self {
            options: options.clone(),
            tokenizer: OnceLock::new(),
            thread: Mutex::new(None),
        });
        loaded.insert(identity, Arc::downgrade(&worker));
        worker
    }

    /// Enqueues a call, or refuses it if the queue is full.
    pub(crate) fn submit(&self, request: Arc<Request>) -> Result<mpsc::Receiver<Event>, Error> {
        let (sender, receiver) = mpsc::channel(limits::EVENTS_WAITING_MAX);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_none_or(|thread| thread.handle.is_finished()) {
            *thread = Some(self.start()?);
        }
        let job = Job {
            request,
            events: sender,
        };
        match thread.as_ref().map(|thread| thread.jobs.try_send(job)) {
            Some(Ok(())) => Ok(receiver),
            Some(Err(TrySendError::Full(_))) => Err(self.full()),
            Some(Err(TrySendError::Disconnected(_))) | None => {
                let message = "the embedded model stopped before it accepted the call";
                Err(Error::new(ErrorKind::Upstream, Phase::BeforeSend, message))
            }
        }
    }

    /// Tokens of a text in the model's vocabulary. Loads only the vocabulary, not the weights.
    pub(crate) fn count_tokens(&self, text: &str) -> Option<usize> {
        self.tokenizer().map(|tokenizer| tokenizer.count(text))
    }

    /// Tokens of a whole request, including those that the template adds.
    pub(crate) fn count_prompt(&self, chat: &ChatRequest) -> Option<usize> {
        let prompt = prompt::render(self.tokenizer()?, chat).ok()?;
        Some(prompt.tokens.len())
    }

    fn tokenizer(&self) -> Option<&Tokenizer> {
        let load = || Tokenizer::load(&self.options.path).ok();
        self.tokenizer.get_or_init(load).as_ref()
    }

    fn start(&self) -> Result<Thread, Error> {
        // Excludes the call that is running.
        let (jobs, queue) = sync_channel(self.options.queue_max);
        let options = self.options.clone();
        let handle = Builder::new()
            .name(String::from("cogn-local"))
            .stack_size(limits::STACK_BYTES)
            .spawn(move || work(&options, &queue))
            .map_err(|error| {
                let message = format!("cannot start a thread for the embedded model: {error}");
                Error::new(ErrorKind::Internal, Phase::BeforeSend, message)
            })?;
        Ok(Thread { jobs, handle })
    }

    fn full(&self) -> Error {
        let message = format!(
            "{} calls are already queued for the embedded model {}",
            self.options.queue_max, self.options.model
        );
        let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message);
        error.retry_after_ms = Some(limits::RETRY_AFTER_MS);
        error
    }
}

impl Drop for Worker {
    /// Waits for the thread, which ends within one batch: the process must not unload the runtime while the
    /// thread is computing.
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Thread { jobs, handle }) = thread.take() {
            drop(jobs);
            // A panic of the thread needs no handling here.
            handle.join().ok();
        }
    }
}

/// Serves calls until the queue is closed. If the weights cannot be loaded, the next call tries again.
fn work(options: &Options, queue: &Receiver<Job>) {
    while let Ok(job) = queue.recv() {
        // Skip a call that was cancelled while queued.
        if job.events.is_closed() {
            continue;
        }
        match Model::load(options) {
            Ok(model) => match model.context(options) {
                Ok(context) => serve(&model, CachedContext::new(context), job, queue),
                Err(error) => refuse(&job, &error),
            },
            Err(error) => refuse(&job, &error),
        }
    }
}

/// Serves calls with a loaded model until the queue is closed or the runtime fails.
fn serve(model: &Model, mut context: CachedContext<'_>, first: Job, queue: &Receiver<Job>) {
    let mut next = Some(first);
    while let Some(job) = next.take().or_else(|| queue.recv().ok()) {
        if job.events.is_closed() {
            continue;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| {
            generate::answer(model, &mut context, &job.request, &job.events);
        }));
        if answer.is_err() {
            let message = "the runtime of the embedded model failed";
            return refuse(&job, &Error::new(ErrorKind::Internal, Phase::MidStream, message));
        }
    }
}

fn refuse(job: &Job, error: &Error) {
    // The receiver may be gone.
    job.events
        .blocking_send(Event::Error { error: error.clone() })
        .ok();
}
