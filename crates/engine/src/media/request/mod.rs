//! The media of a canonical request, made ready before any call: brought here, looked at, cleaned. What is
//! small stays in the request; what is not lies in a folder that lives as long as the request is asked.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use ::media::{Bounds, Format};
use ir::media::{Base64, Media, MediaKind, MediaSource, MimeTrust};
use ir::{Error, ErrorKind, Payload, Phase, Request};
use module::Code;
use module::envelope::ErrorBody;
use tempfile::TempDir;

use super::bring::Item;
use super::fault::{Refusal, own};
use super::{MediaDesk, MediaSettings};
use crate::limits;

/// A request whose media is here. Its files go when this goes.
#[derive(Debug)]
pub(crate) struct Brought {
    pub(crate) request: Arc<Request>,
    _folder: Option<TempDir>,
}

impl MediaDesk {
    /// The request with its media ready. One without media is left as it is. A conversation is too: its media
    /// goes to back-ends that fetch for themselves.
    pub(crate) async fn bring_request(&self, request: Arc<Request>) -> Result<Brought, Error> {
        if !has_media(&request.payload) {
            return Ok(Brought {
                request,
                _folder: None,
            });
        }
        let folder = tempfile::tempdir().map_err(|error| told(own(&error), ""))?;
        let mut ready = Request::clone(&request);
        for (place, media) in media_of(&mut ready.payload) {
            let spill = Spill::new(folder.path().join(place), self.settings.store_threshold);
            let brought = self.ready(media, spill).await;
            brought.map_err(|body| told(body, place))?;
        }
        Ok(Brought {
            request: Arc::new(ready),
            _folder: Some(folder),
        })
    }

    /// A picture of an answer that stands elsewhere, brought here and looked at.
    pub async fn take_in(&self, media: &mut Media) -> Result<(), Error> {
        let folder = tempfile::tempdir().map_err(|error| told(own(&error), ""))?;
        media.kind = MediaKind::Image;
        // What a provider says about its type is not believed either.
        media.mime = None;
        let spill = Spill::new(folder.path().join("picture"), u64::MAX);
        let brought = self.ready(media, spill).await;
        brought.map_err(|body| {
            let message = format!("the picture of the answer cannot be had: {}", body.message);
            Error::invalid_response(Phase::MidStream, message).with_provider_code(Some(body.code))
        })
    }

    async fn ready(&self, media: &mut Media, spill: Spill) -> Result<(), Refusal> {
        let mut item = Item::of(media)?;
        let bounds = bounds(media.kind, &self.settings);
        let fetched = self.bring(&mut item, &bounds).await?;
        let (prepared, spill) = self.look_into(fetched, item.declared(), bounds, spill).await?;
        media.source = spill.into_source().map_err(|error| own(&error))?;
        media.mime = Some(String::from(prepared.fit.format.mime()));
        media.mime_trust = MimeTrust::Verified;
        media.facts = prepared.fit.to_media_facts();
        Ok(())
    }
}

fn has_media(payload: &Payload) -> bool {
    match payload {
        Payload::Transcription(_) => true,
        Payload::Image(asked) => asked.image.is_some() || asked.mask.is_some(),
        Payload::Chat(_) | Payload::Embeddings(_) | Payload::Speech(_) | Payload::Realtime(_) => false,
    }
}

fn media_of(payload: &mut Payload) -> Vec<(&'static str, &mut Media)> {
    match payload {
        Payload::Transcription(asked) => {
            asked.audio.kind = MediaKind::Audio;
            vec![("audio", &mut asked.audio)]
        }
        Payload::Image(asked) => {
            let image = asked.image.iter_mut().map(|media| ("image", media));
            let mask = asked.mask.iter_mut().map(|media| ("mask", media));
            let mut all: Vec<_> = image.chain(mask).collect();
            for (_, media) in &mut all {
                media.kind = MediaKind::Image;
            }
            all
        }
        Payload::Chat(_) | Payload::Embeddings(_) | Payload::Speech(_) | Payload::Realtime(_) => Vec::new(),
    }
}

/// Sound may be the sound of a film; a picture is a picture.
fn bounds(kind: MediaKind, settings: &MediaSettings) -> Bounds {
    let sounds = |format: &Format| {
        format.kind() == MediaKind::Audio || matches!(format, Format::Mp4 | Format::Webm | Format::QuickTime)
    };
    let formats = Format::ALL.into_iter();
    let formats = match kind {
        MediaKind::Audio => formats.filter(sounds).collect(),
        _ => formats
            .filter(|format| format.kind() == MediaKind::Image)
            .collect(),
    };
    Bounds {
        formats,
        audio_ms: limits::SOUND_MS_MAX,
        video_ms: limits::SOUND_MS_MAX,
        video_bytes: Bounds::default().audio_bytes,
        // A mask lies over its picture point by point: neither is scaled unless a person says so.
        oversize: settings.oversize.unwrap_or_default(),
        ..Bounds::default()
    }
}

/// A refusal as an error of the canonical form, with the code of the specification.
fn told(body: Refusal, place: &str) -> Error {
    let kind = match body.code.as_str() {
        "E4000" => ErrorKind::Internal,
        _ => ErrorKind::InvalidRequest,
    };
    let message = match place {
        "" => body.message.clone(),
        place => format!("/payload/{place}: {}", body.message),
    };
    Error::new(kind, Phase::BeforeSend, message).with_provider_code(Some(body.code))
}

/// There is nothing under this name here.
pub(super) fn not_stored(name: &str) -> Refusal {
    let body = ErrorBody::new(Code::E1019, format!("no stored media {name}"));
    Box::new(body.detail("uri", name))
}

/// Bytes in memory up to a limit, and in a file beyond it.
#[derive(Debug)]
pub(super) struct Spill {
    path: PathBuf,
    threshold: u64,
    memory: Vec<u8>,
    file: Option<File>,
}

impl Spill {
    fn new(path: PathBuf, threshold: u64) -> Self {
        Self {
            path,
            threshold,
            memory: Vec::new(),
            file: None,
        }
    }

    fn into_source(mut self) -> io::Result<MediaSource> {
        match self.file.take() {
            None => Ok(MediaSource::Inline(Base64::from_bytes(&self.memory))),
            Some(mut file) => {
                file.flush()?;
                let path = self.path.into_os_string().into_string();
                let path = path.map_err(|_| io::Error::other("the folder has no name in letters"))?;
                Ok(MediaSource::LocalFile(path))
            }
        }
    }
}

impl Write for Spill {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        if (self.memory.len() + bytes.len()) as u64 <= self.threshold {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let mut file = File::create(&self.path)?;
        file.write_all(&self.memory)?;
        self.memory = Vec::new();
        let written = file.write(bytes)?;
        self.file = Some(file);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}
