//! Multipart forms, read from the body chunk by chunk. A small file stays in memory; a larger one is written
//! to the spill store as it arrives and is removed with its last media handle. Nothing beyond a limit is
//! buffered.

use std::io;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use engine::media::storage_full;
use futures::Stream;
use ir::{Map, Media, MediaKind};
use module::Code;
use module::envelope::ErrorBody;
use multer::{Constraints, Field, Multipart, SizeLimit};
use serde_json::Value;
use spill::{ChunkedWriter, RunSpill, SpillWriter};
use tokio::sync::OwnedSemaphorePermit;

use super::form_body::{FormBody, FormProgress, PartHeadersTooLarge};
use crate::limits;
use crate::request::discard;
use crate::response::ApiError;
use crate::state::Gateway;

#[derive(Debug, Default)]
pub(super) struct MultipartForm {
    pub(super) fields: Map,
    /// By field name, in the order of arrival.
    files: Vec<(String, Media)>,
    /// Permits of all forms and of those of one caller.
    permits: Vec<OwnedSemaphorePermit>,
}

impl MultipartForm {
    /// `files` are the fields that are files; all others are text. Waits for a permit before reading.
    pub(super) async fn read(
        headers: &HeaderMap,
        body: Body,
        gateway: &Gateway,
        files: &[&str],
    ) -> Result<Self, ApiError> {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = multer::parse_boundary(kind.unwrap_or_default()).map_err(|_| {
            let message = "the body is not multipart/form-data";
            let body = ErrorBody::new(Code::E1001, message);
            ApiError::with_status(body, StatusCode::UNSUPPORTED_MEDIA_TYPE)
        })?;
        if boundary.len() > limits::FORM_BOUNDARY_BYTES_MAX {
            let allowed = limits::FORM_BOUNDARY_BYTES_MAX;
            let message = format!("the boundary of the form exceeds {allowed} bytes");
            return Err(ApiError::new(
                ErrorBody::new(Code::E1005, message).detail("allowed", allowed),
            ));
        }
        if body.size_hint().lower() > limits::FORM_BYTES_MAX {
            discard(gateway, body.into_data_stream());
            return Err(form_too_large(limits::FORM_BYTES_MAX));
        }
        let reading = async {
            let permit = gateway.multipart_permits.clone().acquire_owned().await.ok();
            let spill = gateway.engine().media().store().run_spill();
            let mut form = Self::parse(body.into_data_stream(), boundary, files, &spill).await?;
            form.permits.extend(permit);
            Ok(form)
        };
        let read_timeout = gateway.settings().body_read;
        let read = tokio::time::timeout(read_timeout, reading).await;
        read.unwrap_or_else(|_| {
            let body = ErrorBody::new(Code::E1001, "the body did not arrive in time");
            Err(ApiError::with_status(body, StatusCode::REQUEST_TIMEOUT))
        })
    }

    /// Holds a permit as long as the form.
    pub(super) fn hold(&mut self, permit: OwnedSemaphorePermit) {
        self.permits.push(permit);
    }

    async fn parse<S, E>(
        pieces: S,
        boundary: String,
        files: &[&str],
        spill: &RunSpill,
    ) -> Result<Self, ApiError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let limit = SizeLimit::new().whole_stream(limits::FORM_BYTES_MAX);
        let constraints = Constraints::new().size_limit(limit);
        let progress = FormProgress::default();
        let body = FormBody {
            pieces,
            progress: progress.clone(),
        };
        let mut parts = Multipart::with_constraints(body, boundary, constraints);
        let mut form = Self::default();
        let (mut count, mut text_bytes) = (0, 0);
        while let Some(mut field) = parts
            .next_field()
            .await
            .map_err(|error| multipart_error(&error))?
        {
            progress.reached();
            count += 1;
            if count > limits::FORM_FIELDS_MAX {
                let message = format!("the form has more than {} fields", limits::FORM_FIELDS_MAX);
                return Err(ApiError::new(ErrorBody::new(Code::E1005, message)));
            }
            let name = String::from(field.name().unwrap_or_default());
            if files.contains(&name.as_str()) {
                let media = Self::store(&mut field, &progress, spill).await?;
                form.files.push((name, media));
            } else {
                let text = text(&mut field, &progress, limits::FORM_TEXT_BYTES_MAX - text_bytes).await?;
                text_bytes += text.len();
                form.put(&name, text);
            }
        }
        Ok(form)
    }

    /// A field name with the suffix `[]` is an element of a list.
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

    /// The declared media type is ignored; the type is detected from the bytes.
    async fn store(
        field: &mut Field<'_>,
        progress: &FormProgress,
        spill: &RunSpill,
    ) -> Result<Media, ApiError> {
        let filename = field.file_name().map(String::from);
        let mut writer = ChunkedWriter::new(spill.writer());
        while let Some(piece) = field.chunk().await.map_err(|error| multipart_error(&error))? {
            progress.reached();
            writer = writer.push(&piece).await.map_err(|error| storage_error(&error))?;
        }
        let stored = writer.finish().await.and_then(SpillWriter::finish);
        let source = stored.map_err(|error| storage_error(&error))?;
        let mut media = Media::new(source, None).with_kind(MediaKind::Other);
        media.hints.filename = filename;
        Ok(media)
    }

    /// Removes and returns all files with one of these field names.
    pub(super) fn files(&mut self, names: &[&str]) -> Vec<Media> {
        let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.files)
            .into_iter()
            .partition(|(name, _)| names.contains(&name.as_str()));
        self.files = left;
        taken.into_iter().map(|(_, media)| media).collect()
    }

    /// Converts a number sent as text.
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

/// `bytes_max` is what other fields have left of the limit of all.
async fn text(field: &mut Field<'_>, progress: &FormProgress, bytes_max: usize) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(|error| multipart_error(&error))? {
        progress.reached();
        if bytes.len() + piece.len() > bytes_max {
            let allowed = limits::FORM_TEXT_BYTES_MAX;
            let message = format!("the fields of the form exceed {allowed} bytes");
            return Err(ApiError::new(
                ErrorBody::new(Code::E1005, message).detail("allowed", allowed),
            ));
        }
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes)
        .map_err(|_| ApiError::new(ErrorBody::new(Code::E1000, "a field of the form is not text")))
}

fn multipart_error(error: &multer::Error) -> ApiError {
    match error {
        multer::Error::StreamSizeExceeded { limit } | multer::Error::FieldSizeExceeded { limit, .. } => {
            form_too_large(*limit)
        }
        multer::Error::StreamReadFailed(cause) if cause.is::<PartHeadersTooLarge>() => {
            let body = ErrorBody::new(Code::E1005, PartHeadersTooLarge.to_string());
            ApiError::new(body.detail("allowed", limits::PART_HEADER_BYTES_MAX))
        }
        _ => ApiError::new(ErrorBody::new(Code::E1000, "the form is incomplete or malformed")),
    }
}

fn form_too_large(allowed: u64) -> ApiError {
    let body = ErrorBody::new(Code::E1005, format!("the body exceeds {allowed} bytes"));
    ApiError::new(body.detail("allowed", allowed))
}

fn storage_error(error: &io::Error) -> ApiError {
    if error.kind() == io::ErrorKind::StorageFull {
        return ApiError::new(*storage_full());
    }
    tracing::error!(%error, "storing a file of a form failed");
    ApiError::new(ErrorBody::new(Code::E4000, "the file could not be stored"))
}

#[cfg(test)]
mod tests;
