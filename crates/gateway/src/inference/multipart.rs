//! A form with files, read from the body piece by piece. A small file stays in memory; a larger one goes to the
//! depot as it arrives, and is there for as long as somebody has it. Nothing is held beyond its limit.

use std::io;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use engine::media::storage_full;
use engine::{Intake, Keeping, Shelf};
use ir::{Map, Media, MediaKind};
use module::Code;
use module::envelope::ErrorBody;
use multer::{Constraints, Field, Multipart, SizeLimit};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::limits;
use crate::response::ApiError;
use crate::state::Gateway;

#[derive(Debug, Default)]
pub(super) struct MultipartForm {
    pub(super) fields: Map,
    /// By the name of their field, in the order in which they came.
    files: Vec<(String, Media)>,
    /// One of the forms that may lie here at a time.
    _place: Option<OwnedSemaphorePermit>,
}

impl MultipartForm {
    /// `files` are the fields that are files; any other is text. Nothing is read while too many forms lie here
    /// already.
    pub(super) async fn read(
        headers: &HeaderMap,
        body: Body,
        gateway: &Gateway,
        files: &[&str],
    ) -> Result<Self, ApiError> {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = multer::parse_boundary(kind.unwrap_or_default()).map_err(|_| {
            let message = "the body is not a form: send multipart/form-data";
            let body = ErrorBody::new(Code::E1001, message);
            ApiError::with_status(body, StatusCode::UNSUPPORTED_MEDIA_TYPE)
        })?;
        let limit = SizeLimit::new().whole_stream(limits::FORM_BYTES_MAX);
        let constraints = Constraints::new().size_limit(limit);
        let parts = Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
        let reading = async {
            let place = gateway.multipart_permits.clone().acquire_owned().await.ok();
            let shelf = gateway.engine.media().depot().shelf();
            let mut form = Self::parse(parts, files, &shelf).await?;
            form._place = place;
            Ok(form)
        };
        let patience = gateway.settings().body_read;
        let read = tokio::time::timeout(patience, reading).await;
        read.unwrap_or_else(|_| {
            let body = ErrorBody::new(Code::E1001, "the body did not arrive in time");
            Err(ApiError::with_status(body, StatusCode::REQUEST_TIMEOUT))
        })
    }

    async fn parse(mut parts: Multipart<'_>, files: &[&str], shelf: &Shelf) -> Result<Self, ApiError> {
        let mut form = Self::default();
        let mut count = 0;
        while let Some(mut field) = parts.next_field().await.map_err(|error| unreadable(&error))? {
            count += 1;
            if count > limits::FORM_FIELDS_MAX {
                let message = format!("the form has more than {} fields", limits::FORM_FIELDS_MAX);
                return Err(ApiError::new(ErrorBody::new(Code::E1005, message)));
            }
            let name = String::from(field.name().unwrap_or_default());
            if files.contains(&name.as_str()) {
                let media = Self::keep(&mut field, shelf).await?;
                form.files.push((name, media));
            } else {
                let text = text(&mut field).await?;
                form.put(&name, text);
            }
        }
        Ok(form)
    }

    /// A name with `[]` behind it is a member of a list.
    fn put(&mut self, name: &str, text: String) {
        match name.strip_suffix("[]") {
            Some(list) => {
                let slot = self
                    .fields
                    .entry(list)
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = slot {
                    list.push(Value::from(text));
                }
            }
            None => {
                self.fields.insert(String::from(name), Value::from(text));
            }
        }
    }

    /// What its sender says it is, is not believed: the bytes tell.
    async fn keep(field: &mut Field<'_>, shelf: &Shelf) -> Result<Media, ApiError> {
        let filename = field.file_name().map(String::from);
        let mut intake = Intake::new(shelf.keep());
        while let Some(piece) = field.chunk().await.map_err(|error| unreadable(&error))? {
            intake = intake.push(&piece).await.map_err(|error| own(&error))?;
        }
        let kept = intake.finish().await.and_then(Keeping::finish);
        let source = kept.map_err(|error| own(&error))?;
        let mut media = Media::new(source, None).with_kind(MediaKind::Other);
        media.hints.filename = filename;
        Ok(media)
    }

    /// All files under any of these names.
    pub(super) fn files(&mut self, names: &[&str]) -> Vec<Media> {
        let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.files)
            .into_iter()
            .partition(|(name, _)| names.contains(&name.as_str()));
        self.files = left;
        taken.into_iter().map(|(_, media)| media).collect()
    }

    /// A number that arrived as text.
    pub(super) fn make_number(&mut self, key: &str) -> Result<(), ApiError> {
        let Some(Value::String(text)) = self.fields.get(key) else {
            return Ok(());
        };
        let number: serde_json::Number = text.trim().parse().map_err(|_| {
            let body = ErrorBody::new(Code::E1001, format!("`{key}` is not a number"));
            ApiError::new(body.detail("pointer", format!("/{key}")))
        })?;
        self.fields.insert(String::from(key), Value::Number(number));
        Ok(())
    }
}

async fn text(field: &mut Field<'_>) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(|error| unreadable(&error))? {
        if bytes.len() + piece.len() > limits::FORM_TEXT_BYTES_MAX {
            let allowed = limits::FORM_TEXT_BYTES_MAX;
            let message = format!("a field of the form exceeds {allowed} bytes");
            return Err(ApiError::new(
                ErrorBody::new(Code::E1005, message).detail("allowed", allowed),
            ));
        }
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes)
        .map_err(|_| ApiError::new(ErrorBody::new(Code::E1000, "a field of the form is not text")))
}

fn unreadable(error: &multer::Error) -> ApiError {
    match error {
        multer::Error::StreamSizeExceeded { limit } | multer::Error::FieldSizeExceeded { limit, .. } => {
            let body = ErrorBody::new(Code::E1005, format!("the body exceeds {limit} bytes"));
            ApiError::new(body.detail("allowed", *limit))
        }
        _ => ApiError::new(ErrorBody::new(Code::E1000, "the form cannot be read to its end")),
    }
}

fn own(error: &io::Error) -> ApiError {
    if error.kind() == io::ErrorKind::StorageFull {
        return ApiError::new(*storage_full());
    }
    tracing::error!(%error, "a file of a form could not be kept");
    ApiError::new(ErrorBody::new(Code::E4000, "the file could not be kept"))
}
