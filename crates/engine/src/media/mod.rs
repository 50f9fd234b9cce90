//! The media of a run, prepared before any upstream request: found in the input, loaded, inspected,
//! sanitised, and converted to parts of the request. A refusal has its error code, and nothing is sent.
//!
//! The crate `media` inspects bytes and the port [`Fetch`] fetches them; this module decides what may be read
//! and fetched, and limits time and memory.

mod bounds;
mod errors;
mod journaled;
mod load;
mod prepared;
mod request;
mod settings;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ::media::Prepared;
use ir::media::{Media, MediaSource, MimeTrust};
use module::Module;
use module::input::media_locations;
use serde_json::{Map, Value};
use spill::{RunFiles, SpillStore, SpillWriter};
use tokio::sync::Semaphore;

use self::bounds::bounds;
pub use self::errors::storage_full;
use self::errors::{MediaError, refused, violation, with_location};
pub(crate) use self::journaled::{KeptFiles, from_journal, remove_ended, to_journal};
use self::load::MediaItem;
pub(crate) use self::prepared::PreparedMedia;
pub use self::settings::{FetchRule, MediaSettings};
use crate::limits;
use crate::port::Fetch;

/// Prepares the media of all runs of an engine.
#[derive(Clone, Debug)]
pub struct MediaPipeline {
    settings: MediaSettings,
    fetch: Option<Arc<dyn Fetch>>,
    store: SpillStore,
    run_files: Option<RunFiles>,
    load_permits: Arc<Semaphore>,
    /// Limits concurrent inspections: each may need much memory.
    inspect_permits: Arc<Semaphore>,
}

impl Default for MediaPipeline {
    fn default() -> Self {
        Self::new(MediaSettings::default(), None)
    }
}

impl MediaPipeline {
    /// Without a `fetch`, URLs are refused.
    pub fn new(settings: MediaSettings, fetch: Option<Arc<dyn Fetch>>) -> Self {
        let store = SpillStore::new(
            settings.folder.clone(),
            settings.store_threshold,
            settings.store_bytes_max,
        );
        Self {
            settings,
            fetch,
            store,
            run_files: None,
            load_permits: Arc::new(Semaphore::new(limits::MEDIA_LOADS_MAX)),
            inspect_permits: Arc::new(Semaphore::new(limits::MEDIA_INSPECTIONS_MAX)),
        }
    }

    /// Prepares all media of a run; `None` if the input has none. `report` receives the finished and
    /// the total number of items.
    pub(crate) async fn prepare(
        &self,
        module: &Module,
        input: &Map<String, Value>,
        mut report: impl FnMut(usize, usize) + Send,
    ) -> Result<Option<PreparedMedia>, MediaError> {
        let places = media_locations(module, input);
        if places.is_empty() {
            return Ok(None);
        }
        let bounds = bounds(module, &self.settings);
        let mut ready = PreparedMedia::new(module, &places)?;
        let spill = self.store.run_spill();
        for (index, place) in places.iter().enumerate() {
            report(index, places.len());
            let item = find(input, place).unwrap_or(&Value::Null);
            let here = |body: MediaError| with_location(body, index, place);
            if let Some(body) = violation(item) {
                return Err(here(body));
            }
            let mut item = MediaItem::read(item).map_err(here)?;
            let source = self.load(&mut item, &bounds).await.map_err(here)?;
            let (prepared, kept) = self
                .inspect(source, item.declared(), bounds.clone(), spill.writer())
                .await
                .map_err(here)?;
            ready.push(&item, &prepared).map_err(here)?;
            ready.media.push(media(&prepared, kept));
        }
        report(places.len(), places.len());
        Ok(Some(ready))
    }

    /// Keeps long inline media of unfinished runs in files; without them, such a run is not rerun after a
    /// crash.
    #[must_use]
    pub fn with_run_files(mut self, files: Option<RunFiles>) -> Self {
        self.run_files = files;
        self
    }

    pub const fn run_files(&self) -> Option<&RunFiles> {
        self.run_files.as_ref()
    }

    /// The storage for media above the threshold.
    pub const fn store(&self) -> &SpillStore {
        &self.store
    }

    async fn load(
        &self,
        item: &mut MediaItem,
        bounds: &::media::Bounds,
    ) -> Result<Box<dyn ::media::Source>, MediaError> {
        let _carrier = self.load_permits.acquire().await;
        load::load(item, &self.settings, self.fetch.as_deref(), bounds, &self.store).await
    }

    async fn inspect(
        &self,
        source: Box<dyn ::media::Source>,
        declared: ::media::Declared,
        bounds: ::media::Bounds,
        writer: SpillWriter,
    ) -> Result<(Prepared, MediaSource), MediaError> {
        let full = writer.full();
        match self.inspect_blocking(source, declared, bounds, writer).await {
            Ok((prepared, writer)) => {
                let kept = writer.finish();
                kept.map(|kept| (prepared, kept))
                    .map_err(|error| errors::internal(&error))
            }
            Err(_) if full.load(Ordering::SeqCst) => Err(storage_full()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Inspects on the blocking pool, with limited concurrency and a timeout. The bytes to send are written
    /// to `out`.
    async fn inspect_blocking<W: Write + Send + 'static>(
        &self,
        mut source: Box<dyn ::media::Source>,
        declared: ::media::Declared,
        bounds: ::media::Bounds,
        mut out: W,
    ) -> Result<(Prepared, W), MediaError> {
        let permit = self.inspect_permits.clone().acquire_owned().await;
        let work = tokio::task::spawn_blocking(move || {
            let prepared = ::media::prepare(&mut *source, &declared, &bounds, &mut out);
            // The permit is released when the work is done, even after a timeout.
            drop(permit);
            prepared.map(|prepared| (prepared, out))
        });
        let timeout = Duration::from_millis(limits::MEDIA_INSPECTION_MS);
        match tokio::time::timeout(timeout, work).await {
            Ok(Ok(inspected)) => inspected.map_err(|fault| refused(&fault)),
            _ => Err(errors::inspection_timeout()),
        }
    }
}

/// The value at a JSON pointer into the input.
fn find<'a>(input: &'a Map<String, Value>, place: &str) -> Option<&'a Value> {
    let path = place.strip_prefix('/')?;
    let (first, rest) = path.find('/').map_or((path, ""), |at| path.split_at(at));
    let name = first.replace("~1", "/").replace("~0", "~");
    input.get(&name)?.pointer(rest)
}

/// The request part for the media.
fn media(prepared: &Prepared, source: MediaSource) -> Media {
    let mime = String::from(prepared.output.format.mime());
    let mut media = Media::new(source, Some(mime));
    media.mime_trust = MimeTrust::Verified;
    media.facts = prepared.output.to_media_facts();
    media
}
