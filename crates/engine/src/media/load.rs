//! Loads an item of the input for inspection: decoded, opened, or fetched once per run.

use std::fs::File;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use ::media::{Bounds, Declared, Error, Format, Limit, Source};
use ir::media::{Base64, Checksum, Media, MediaHandle, MediaSource, StoredRef};
use module::Code;
use module::envelope::ErrorBody;
use serde_json::Value;
use spill::SpillStore;
use tokio::io::AsyncWriteExt;

use super::errors::{MediaError, fetch_disabled, fetching, internal, no_file, refused};
use super::request::not_stored;
use super::settings::{FetchRule, MediaSettings};
use crate::port::Fetch;

/// A media item of an input, after validation of its form.
#[derive(Clone, Debug)]
pub(super) struct MediaItem {
    pub(super) from: MediaOrigin,
    media_type: Option<String>,
    checksum: Option<Checksum>,
}

#[derive(Clone, Debug)]
pub(super) enum MediaOrigin {
    Url(String),
    Inline(Base64),
    File(String),
    /// Already in the spill store.
    Handle(MediaHandle),
}

impl MediaItem {
    pub(super) fn read(item: &Value) -> Result<Self, MediaError> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(String::from);
        let mut media_type = text("media_type");
        let checksum = item.get("checksum").cloned();
        let from = match item.get("type").and_then(Value::as_str) {
            Some("url") => {
                let media = Media::from_url(&text("url").unwrap_or_default());
                match media.source {
                    MediaSource::Inline(data) => {
                        media_type = media_type.or(media.mime);
                        MediaOrigin::Inline(data)
                    }
                    _ => MediaOrigin::Url(text("url").unwrap_or_default()),
                }
            }
            Some("base64") => MediaOrigin::Inline(Base64::from_text(text("data").unwrap_or_default())),
            Some("file") => MediaOrigin::File(text("path").unwrap_or_default()),
            _ => {
                let id = text("upload_id").unwrap_or_default();
                let body = ErrorBody::new(Code::E1019, format!("no upload {id}"));
                return Err(Box::new(body.detail("upload_id", id)));
            }
        };
        Ok(Self {
            from,
            media_type,
            checksum: checksum.and_then(|value| serde_json::from_value(value).ok()),
        })
    }

    /// Media of a canonical request. References to other stores are refused.
    pub(super) fn of(media: &Media) -> Result<Self, MediaError> {
        let from = match &media.source {
            MediaSource::Inline(data) => MediaOrigin::Inline(data.clone()),
            MediaSource::Remote(url) => MediaOrigin::Url(url.clone()),
            // External references cannot name these: only the gateway creates them.
            MediaSource::Handle(held) => MediaOrigin::Handle(held.clone()),
            MediaSource::LocalFile(path) => return Err(no_file(path)),
            MediaSource::Stored(StoredRef::Id(id)) => return Err(not_stored(&id.uri())),
            MediaSource::Stored(StoredRef::Foreign { text, .. }) => return Err(not_stored(text)),
            MediaSource::ProviderFile { backend, id } => {
                return Err(not_stored(&format!("{id} of {backend}")));
            }
        };
        Ok(Self {
            from,
            media_type: media.mime.clone(),
            checksum: media.checksum.clone(),
        })
    }

    pub(super) fn declared(&self) -> Declared {
        Declared {
            mime: self.media_type.clone(),
            checksum: self.checksum.clone(),
        }
    }

    /// Maximum number of bytes to load.
    fn bytes_max(&self, bounds: &Bounds) -> u64 {
        let said = self.media_type.as_deref().and_then(Format::from_mime);
        bounds.bytes(said.map(Format::kind))
    }
}

/// The bytes of an item, for inspection. Inline data is moved out of the item.
pub(super) async fn load(
    item: &mut MediaItem,
    settings: &MediaSettings,
    fetch: Option<&dyn Fetch>,
    bounds: &Bounds,
    store: &SpillStore,
) -> Result<Box<dyn Source>, MediaError> {
    // An unsupported type is refused before any byte is loaded.
    if let Some(mime) = &item.media_type
        && Format::from_mime(mime).is_none()
    {
        return Err(refused(&Error::Unsupported {
            media_type: Some(mime.clone()),
            allowed: bounds
                .formats
                .iter()
                .map(|format| String::from(format.mime()))
                .collect(),
        }));
    }
    let bytes_max = item.bytes_max(bounds);
    match &mut item.from {
        MediaOrigin::Inline(data) => {
            let allowed = settings
                .inline_accept_max
                .map_or(bytes_max, |max| max.min(bytes_max));
            let data = std::mem::replace(data, Base64::from_text(""));
            let store = store.clone();
            blocking(move || inline(&data, allowed, &store)).await
        }
        MediaOrigin::File(path) => {
            let (path, settings) = (path.clone(), settings.clone());
            blocking(move || Ok(Box::new(open(&path, &settings)?) as Box<dyn Source>)).await
        }
        MediaOrigin::Handle(held) => Ok(Box::new(held.reader())),
        MediaOrigin::Url(url) => {
            let hosts = match &settings.fetch {
                FetchRule::Hosts(hosts) => hosts,
                FetchRule::Off => return Err(fetch_disabled(url)),
            };
            let fetch = fetch.ok_or_else(|| fetch_disabled(url))?;
            let scratch = store.scratch_file().map_err(|error| internal(&error))?;
            let mut out = tokio::fs::File::from_std(scratch);
            let fetched = fetch.fetch(url, hosts, bytes_max, &mut out).await;
            fetched.map_err(|error| fetching(&error, url))?;
            out.flush().await.map_err(|error| internal(&error))?;
            Ok(Box::new(out.into_std().await))
        }
    }
}

/// Runs on the blocking pool.
async fn blocking(
    work: impl FnOnce() -> Result<Box<dyn Source>, MediaError> + Send + 'static,
) -> Result<Box<dyn Source>, MediaError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| internal(&io::Error::other(error)))?
}

/// The size is checked before anything is decoded.
fn inline(data: &Base64, allowed: u64, store: &SpillStore) -> Result<Box<dyn Source>, MediaError> {
    let actual = data.as_str().len() as u64 / 4 * 3;
    if actual > allowed.saturating_add(2) {
        return Err(refused(&Error::TooLarge {
            limit: Limit::Size,
            allowed,
            actual,
        }));
    }
    let broken = || {
        let body = ErrorBody::new(Code::E1013, "data is not base64");
        Box::new(body.detail("reason", "not base64"))
    };
    if actual <= store.threshold() {
        let bytes = data.decode().map_err(|_| broken())?;
        return Ok(Box::new(Cursor::new(bytes)));
    }
    let mut scratch = store.scratch_file().map_err(|error| internal(&error))?;
    match data.decode_into(&mut scratch) {
        Ok(_) => Ok(Box::new(scratch)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(broken()),
        Err(error) => Err(internal(&error)),
    }
}

/// Opens a file whose real path, with all links followed, is inside an allowed folder.
fn open(path: &str, settings: &MediaSettings) -> Result<File, MediaError> {
    let refuse = || no_file(path);
    let named = Path::new(path);
    let candidates: Vec<PathBuf> = if named.is_absolute() {
        vec![named.to_path_buf()]
    } else {
        settings.roots.iter().map(|root| root.join(named)).collect()
    };
    let real = candidates
        .iter()
        .find_map(|path| path.canonicalize().ok())
        .ok_or_else(refuse)?;
    let within = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    let given = |file: &PathBuf| file.canonicalize().is_ok_and(|file| real == file);
    if !settings.roots.iter().any(within) && !settings.files.iter().any(given) {
        return Err(refuse());
    }
    // Opening a pipe would block without limit.
    if !real.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(refuse());
    }
    File::open(&real).map_err(|_| refuse())
}
