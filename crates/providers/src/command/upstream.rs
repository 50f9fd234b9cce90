//! A program as a back-end. The configuration limits the number of running processes; a bounded number of
//! calls waits, and further calls are rejected. Dropping a call kills its process group.

use std::future::ready;
use std::io::{self, Write};
use std::sync::Arc;

use engine::port::{Backend, EventStream, RawRequest, RawStream, UnaryResponse, Upstream};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use ir::{Error, ErrorKind, Event, Operation, Phase, Request};
use spill::ChunkedWriter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::invocation::{Invocation, empty_folder, invoke, open_output};
use super::options::{CommandOptions, OutputFormat};
use super::output::{is_media, media_reply, reply};
use super::process::{ProcessSpec, RunningProcess};
use super::stdout_stream::StdoutStream;
use crate::limits::{COMMAND_QUEUE_MAX, COMMAND_RETRY_AFTER_MS, COMMAND_TRIAL_TIME_MAX};
use crate::spill_error::unkept;

#[derive(Clone, Debug)]
pub struct CommandUpstream {
    backend: Backend,
    inner: Arc<CommandInner>,
}

#[derive(Debug)]
struct CommandInner {
    options: Arc<CommandOptions>,
    /// Permits of calls that run or wait.
    places: Arc<Semaphore>,
    /// Permits of calls that run.
    running: Arc<Semaphore>,
}

/// The permit to run a process, released on drop.
#[derive(Debug)]
pub(super) struct ProcessPermit {
    _place: OwnedSemaphorePermit,
    _running: OwnedSemaphorePermit,
}

impl CommandUpstream {
    pub fn new(options: CommandOptions) -> Self {
        let model = options.model.clone().or_else(|| options.default_model.clone());
        let backend = Backend {
            name: options.name.clone(),
            kind: String::from("command"),
            model,
        };
        let running = options.processes_max.clamp(1, Semaphore::MAX_PERMITS / 2);
        let waiting = options.queue_max.min(COMMAND_QUEUE_MAX);
        let inner = CommandInner {
            places: Arc::new(Semaphore::new(running + waiting)),
            running: Arc::new(Semaphore::new(running)),
            options: Arc::new(options),
        };
        Self {
            backend,
            inner: Arc::new(inner),
        }
    }

    pub fn operation(&self) -> Operation {
        self.inner.options.operation
    }

    /// Runs the program with other arguments and checks that it succeeds: its dependencies may be missing
    /// although the program itself is installed.
    ///
    /// # Errors
    /// When it cannot be started, fails or times out.
    pub async fn probe(&self, arguments: &[String]) -> Result<(), Error> {
        let options = &self.inner.options;
        let folder = empty_folder().map_err(|error| {
            let message = format!("cannot create its working folder: {}", error.kind());
            Error::new(ErrorKind::Internal, Phase::BeforeSend, message)
        })?;
        let plan = ProcessSpec {
            program: options.program.clone(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: options.environment.clone(),
            folder,
            stdin: None,
            timeout: COMMAND_TRIAL_TIME_MAX,
            output_bytes_max: options.output_bytes_max,
            output: None,
            memory: options.memory.clone(),
        };
        let mut running = RunningProcess::start(plan)?;
        while running.read().await?.is_some() {}
        Ok(())
    }
}

impl Upstream for CommandUpstream {
    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        let inner = self.inner.clone();
        let backend = self.backend.clone();
        let opened = async move {
            let begun = async {
                let turn = inner.turn().await?;
                let asked = invoke(&inner.options, &request).await?;
                Ok(StdoutStream::new(inner.options.clone(), asked, turn, &backend))
            };
            match begun.await {
                Ok(speaking) => speaking.events(),
                Err(error) => stream::iter([Event::Error { error }]).boxed(),
            }
        };
        opened.into_stream().flatten().boxed()
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        let inner = self.inner.clone();
        async move { inner.answer(&request).await }.boxed()
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

impl CommandInner {
    async fn answer(&self, request: &Request) -> Result<UnaryResponse, Error> {
        let _turn = self.turn().await?;
        let mut asked = invoke(&self.options, request).await?;
        let options = &*self.options;
        let payload = if is_media(options.operation) {
            let kept = gather(&mut asked, options, options.spill.run_spill().writer()).await?;
            media_reply(kept, &asked.values, options)?
        } else {
            let bytes = gather(&mut asked, options, Vec::new()).await?;
            reply(&bytes, request, &asked.values, options)?
        };
        Ok(UnaryResponse {
            payload,
            // Programs report no token counts; unknown is not zero.
            usage: None,
            adaptations: asked.adaptations,
            raw: None,
        })
    }

    /// Acquires a process permit, waiting within the queue limit.
    async fn turn(&self) -> Result<ProcessPermit, Error> {
        let full = || {
            let message = format!("too many calls are queued for back-end {}", self.options.name);
            let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message);
            error.retry_after_ms = Some(COMMAND_RETRY_AFTER_MS);
            error
        };
        let place = self.places.clone().try_acquire_owned().map_err(|_| full())?;
        let running = self.running.clone().acquire_owned().await.map_err(|_| full())?;
        Ok(ProcessPermit {
            _place: place,
            _running: running,
        })
    }
}

/// Writes the complete output to `out`, off the event loop, and returns it when the program has succeeded.
pub(super) async fn gather<W: Write + Send + 'static>(
    asked: &mut Invocation,
    options: &CommandOptions,
    out: W,
) -> Result<W, Error> {
    let mut writer = ChunkedWriter::new(out);
    while let Some(piece) = asked.running.read().await? {
        // With an output file, standard output is ignored.
        if asked.output.is_none() {
            writer = writer.push(&piece).await.map_err(|error| unkept(&error))?;
        }
    }
    let mut out = writer.finish().await.map_err(|error| unkept(&error))?;
    let Some(path) = asked.output.clone() else {
        return Ok(out);
    };
    let bytes_max = options.output_bytes_max;
    let read = tokio::task::spawn_blocking(move || {
        let mut written = open_output(&path, bytes_max)?;
        Ok(io::copy(&mut written, &mut out).map(|_| out))
    });
    match read.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(copied) => copied.map_err(|error| unkept(&error)),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(asked.running.too_much()),
        Err(_) => {
            let message = format!("back-end {} wrote no output", options.name);
            Err(Error::invalid_response(Phase::BeforeFirstByte, message))
        }
    }
}

/// Whether standard output can be streamed.
pub(super) fn streams(asked: &Invocation, options: &CommandOptions) -> bool {
    asked.output.is_none() && options.reply == OutputFormat::Text
}
