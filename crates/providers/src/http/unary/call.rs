//! Encodes a payload as a request body: JSON, or a multipart form if it has files.

use ir::adaptation::Ledger;
use ir::envelope::{ImageRequest, TranscriptionRequest};
use ir::media::Base64;
use ir::{Dialect, Error, ErrorKind, Map, Media, MediaSource, Payload, Phase};
use serde_json::Value;
use spill::BodySegment;
use wire::{embeddings, openai_images, openai_speech, openai_transcriptions};

use super::multipart::{FilePart, MultipartBody};

#[derive(Debug)]
pub(super) enum UnaryBody {
    Json(Vec<u8>),
    Form(MultipartBody),
}

/// A request before serialization: one object and its files.
#[derive(Debug)]
pub(super) struct RequestDraft {
    pub(super) body: Value,
    files: Vec<(&'static str, FilePart)>,
}

impl RequestDraft {
    pub(super) fn into_call(self) -> Result<UnaryBody, Error> {
        if self.files.is_empty() {
            let bytes = serde_json::to_vec(&self.body);
            let bytes = bytes.map_err(|error| Error::invalid_request(error.to_string()))?;
            return Ok(UnaryBody::Json(bytes));
        }
        let mut form = MultipartBody::of(object(self.body));
        for (field, file) in self.files {
            form.file(field, file);
        }
        Ok(UnaryBody::Form(form))
    }
}

pub(super) fn encode(
    dialect: Dialect,
    payload: &Payload,
    model: String,
    ledger: &mut Ledger,
) -> Result<RequestDraft, Error> {
    match payload {
        Payload::Embeddings(asked) => {
            let mut asked = asked.clone();
            asked.model = Some(model);
            Ok(json(embeddings::encode_request(dialect, &asked, ledger)?))
        }
        Payload::Speech(asked) => {
            let mut asked = asked.clone();
            asked.model = Some(model);
            Ok(json(openai_speech::encode_request(&asked, ledger)))
        }
        Payload::Image(asked) => image(asked, model, ledger),
        Payload::Transcription(asked) => transcription(asked, model, ledger),
        Payload::Chat(_) | Payload::Realtime(_) => {
            let message = "this operation is not unary";
            Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message))
        }
    }
}

fn json(body: Value) -> RequestDraft {
    let files = Vec::new();
    RequestDraft { body, files }
}

fn image(asked: &ImageRequest, model: String, ledger: &mut Ledger) -> Result<RequestDraft, Error> {
    let mut light = ImageRequest {
        image: None,
        mask: None,
        model: Some(model),
        prompt: asked.prompt.clone(),
        n: asked.n,
        size: asked.size.clone(),
        quality: asked.quality.clone(),
        style: asked.style.clone(),
        seed: asked.seed.clone(),
        response_format: asked.response_format.clone(),
        ext: asked.ext.clone(),
        rest: asked.rest.clone(),
    };
    let Some(picture) = &asked.image else {
        if asked.mask.is_some() {
            return Err(Error::invalid_request("a mask requires an image"));
        }
        return Ok(json(openai_images::encode_request(&light, ledger)?));
    };
    // Image edits have no `style` parameter.
    if light.style.take().is_some() {
        ledger.dropped("/payload/style", "not supported for image edits");
    }
    let body = openai_images::encode_request(&light, ledger)?;
    let mut files = vec![("image", file(picture, "image")?)];
    if let Some(mask) = &asked.mask {
        files.push(("mask", file(mask, "mask")?));
    }
    Ok(RequestDraft { body, files })
}

fn transcription(
    asked: &TranscriptionRequest,
    model: String,
    ledger: &mut Ledger,
) -> Result<RequestDraft, Error> {
    // The fields are encoded without the bytes, which are sent as a file.
    let nothing = MediaSource::Inline(Base64::from_text(""));
    let light = TranscriptionRequest {
        model: Some(model),
        audio: Media::new(nothing, asked.audio.mime.clone()),
        language: asked.language.clone(),
        prompt: asked.prompt.clone(),
        timestamps: asked.timestamps,
        diarization: asked.diarization,
        temperature: asked.temperature.clone(),
        ext: asked.ext.clone(),
        rest: asked.rest.clone(),
    };
    let mut fields = object(openai_transcriptions::encode_request(&light, ledger)?);
    fields.shift_remove("file");
    fields.shift_remove("filename");
    let body = Value::Object(fields);
    let files = vec![("file", file(&asked.audio, "audio")?)];
    Ok(RequestDraft { body, files })
}

fn file(media: &Media, name: &str) -> Result<FilePart, Error> {
    let content = content(media)?;
    let mime = media.mime_or_sniffed();
    let mime = mime.unwrap_or_else(|| String::from("application/octet-stream"));
    Ok(FilePart {
        // Vendors detect the format by the file extension.
        name: match ending(&mime) {
            Some(ending) => format!("{name}.{ending}"),
            None => String::from(name),
        },
        mime,
        content,
    })
}

fn content(media: &Media) -> Result<BodySegment, Error> {
    match &media.source {
        MediaSource::Inline(data) => {
            let bytes = data.decode();
            let bytes = bytes.map_err(|_| Error::invalid_request("the media is not base64"))?;
            Ok(BodySegment::Bytes(bytes.into()))
        }
        MediaSource::Handle(handle) => Ok(BodySegment::Raw(handle.clone())),
        MediaSource::Stored(_)
        | MediaSource::Remote(_)
        | MediaSource::LocalFile(_)
        | MediaSource::ProviderFile { .. } => {
            let message = "the media has to be fetched before it can be sent";
            Err(Error::invalid_request(message))
        }
    }
}

fn ending(mime: &str) -> Option<&'static str> {
    let plain = mime.split(';').next().unwrap_or_default().trim();
    Some(match plain {
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" | "audio/opus" => "ogg",
        "audio/webm" | "video/webm" => "webm",
        "audio/mp4" | "audio/m4a" | "audio/x-m4a" => "m4a",
        "audio/flac" => "flac",
        "video/mp4" => "mp4",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/webp" => "webp",
        "image/gif" => "gif",
        _ => return None,
    })
}

fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
