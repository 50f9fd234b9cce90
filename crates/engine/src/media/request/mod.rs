//! The media of a canonical request, prepared before any upstream request: loaded, inspected, sanitised.
//! Small media stays inline; larger media is in the spill store as long as the request exists.

#[cfg(test)]
mod tests;
mod urls;

use std::sync::Arc;

use ::media::{Bounds, Format};
use ir::media::{Media, MediaKind, MimeTrust};
use ir::{Error, ErrorKind, Payload, Phase, Request};
use module::Code;
use module::envelope::ErrorBody;
use serde_json::Value;
use spill::SpillWriter;

use super::errors::MediaError;
use super::load::MediaItem;
use super::{MediaPipeline, MediaSettings};
use crate::limits;

impl MediaPipeline {
    /// The request with prepared media. A request without media is unchanged, as is a chat request: its media
    /// goes to back-ends that fetch it themselves; [`Self::check_urls`] guards its URLs.
    pub(crate) async fn prepare_request(&self, request: Arc<Request>) -> Result<Arc<Request>, Error> {
        if !has_media(&request.payload) {
            return Ok(request);
        }
        let spill = self.store.run_spill();
        let mut ready = Request::clone(&request);
        for (place, media) in media_of(&mut ready.payload) {
            let prepared = self.prepare_media(media, spill.writer()).await;
            prepared.map_err(|body| to_error(body, place))?;
        }
        Ok(Arc::new(ready))
    }

    /// Loads and inspects an image of a response that is stored elsewhere.
    pub async fn ingest(&self, media: &mut Media) -> Result<(), Error> {
        media.kind = MediaKind::Image;
        // The media type reported by a provider is not trusted.
        media.mime = None;
        let prepared = self.prepare_media(media, self.store.run_spill().writer()).await;
        prepared.map_err(|body| {
            if body.code == Code::E4000.as_str() {
                return to_error(body, "");
            }
            let message = format!("the image of the answer could not be loaded: {}", body.message);
            Error::invalid_response(Phase::MidStream, message).with_provider_code(Some(body.code))
        })
    }

    async fn prepare_media(&self, media: &mut Media, writer: SpillWriter) -> Result<(), MediaError> {
        let mut item = MediaItem::of(media)?;
        let bounds = bounds(media.kind, &self.settings);
        let fetched = self.load(&mut item, &bounds).await?;
        let (prepared, kept) = self.inspect(fetched, item.declared(), bounds, writer).await?;
        media.source = kept;
        media.mime = Some(String::from(prepared.output.format.mime()));
        media.mime_trust = MimeTrust::Verified;
        media.facts = prepared.output.to_media_facts();
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

/// Audio may be the sound track of a video; an image is always an image.
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
        audio_ms: limits::AUDIO_MS_MAX,
        video_ms: limits::AUDIO_MS_MAX,
        video_bytes: Bounds::default().audio_bytes,
        // A mask matches its image pixel by pixel, so neither is scaled unless the operator configures it.
        oversize: settings.oversize.unwrap_or_default(),
        ..Bounds::default()
    }
}

/// A refusal as a canonical error, with the code of the specification.
fn to_error(body: MediaError, place: &str) -> Error {
    let kind = match body.code.as_str() {
        "E4000" => ErrorKind::Internal,
        _ => ErrorKind::InvalidRequest,
    };
    let message = match place {
        "" => body.message.clone(),
        place => format!("/payload/{place}: {}", body.message),
    };
    let mut error = Error::new(kind, Phase::BeforeSend, message).with_provider_code(Some(body.code));
    let details = body.details.unwrap_or_default();
    error.retry_after_ms = details.get("retry_after_ms").and_then(Value::as_u64);
    error
}

/// The reference does not resolve here.
pub(super) fn not_stored(name: &str) -> MediaError {
    let body = ErrorBody::new(Code::E1019, format!("no stored media {name}"));
    Box::new(body.detail("uri", name))
}
