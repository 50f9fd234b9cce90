//! A form with files, read from the body piece by piece. A small file stays in memory; a larger one goes to a
//! folder of its own as it arrives, and the folder goes with the form. Nothing is held beyond its limit.

use std::io;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use ir::media::Base64;
use ir::{Map, Media, MediaKind, MediaSource};
use module::Code;
use module::envelope::ErrorBody;
use multer::{Constraints, Field, Multipart, SizeLimit};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::OwnedSemaphorePermit;

use crate::limits;
use crate::reply::Refusal;
use crate::state::Gateway;

#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) fields: Map,
    /// By the name of their field, in the order in which they came.
    files: Vec<(String, Media)>,
    /// Where larger files lie, for as long as the form is needed.
    folder: Option<TempDir>,
    /// Bytes of a file that are held in memory.
    threshold: u64,
    /// One of the forms that may lie here at a time.
    _place: Option<OwnedSemaphorePermit>,
}

impl Form {
    /// `files` are the fields that are files; any other is text. Nothing is read while too many forms lie here
    /// already.
    pub(super) async fn read(
        headers: &HeaderMap,
        body: Body,
        gateway: &Gateway,
        files: &[&str],
    ) -> Result<Self, Refusal> {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = multer::parse_boundary(kind.unwrap_or_default()).map_err(|_| {
            let message = "the body is not a form: send multipart/form-data";
            let body = ErrorBody::new(Code::E1001, message);
            Refusal::with_status(body, StatusCode::UNSUPPORTED_MEDIA_TYPE)
        })?;
        let limit = SizeLimit::new().whole_stream(limits::FORM_BYTES_MAX);
        let constraints = Constraints::new().size_limit(limit);
        let parts = Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
        let reading = async {
            let place = gateway.forms.clone().acquire_owned().await.ok();
            let mut form = Self::take(parts, files, gateway.engine.media().store_threshold()).await?;
            form._place = place;
            Ok(form)
        };
        let patience = gateway.settings().body_read;
        let read = tokio::time::timeout(patience, reading).await;
        read.unwrap_or_else(|_| {
            let body = ErrorBody::new(Code::E1001, "the body did not arrive in time");
            Err(Refusal::with_status(body, StatusCode::REQUEST_TIMEOUT))
        })
    }

    async fn take(mut parts: Multipart<'_>, files: &[&str], threshold: u64) -> Result<Self, Refusal> {
        let mut form = Self {
            threshold,
            ..Self::default()
        };
        let mut count = 0;
        while let Some(mut field) = parts.next_field().await.map_err(|error| unreadable(&error))? {
            count += 1;
            if count > limits::FORM_FIELDS_MAX {
                let message = format!("the form has more than {} fields", limits::FORM_FIELDS_MAX);
                return Err(Refusal::new(ErrorBody::new(Code::E1005, message)));
            }
            let name = String::from(field.name().unwrap_or_default());
            if files.contains(&name.as_str()) {
                let media = form.keep(&mut field).await?;
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
    async fn keep(&mut self, field: &mut Field<'_>) -> Result<Media, Refusal> {
        let filename = field.file_name().map(String::from);
        let mut memory = Vec::new();
        let mut file = None;
        let mut taken = 0;
        while let Some(piece) = field.chunk().await.map_err(|error| unreadable(&error))? {
            taken += piece.len() as u64;
            if file.is_none() && taken > self.threshold {
                let path = self.place()?;
                let mut opened = tokio::fs::File::create(&path)
                    .await
                    .map_err(|error| own(&error))?;
                opened.write_all(&memory).await.map_err(|error| own(&error))?;
                memory = Vec::new();
                file = Some((opened, path));
            }
            match &mut file {
                Some((file, _)) => file.write_all(&piece).await.map_err(|error| own(&error))?,
                None => memory.extend_from_slice(&piece),
            }
        }
        let source = match file {
            Some((mut file, path)) => {
                file.flush().await.map_err(|error| own(&error))?;
                MediaSource::LocalFile(path)
            }
            None => MediaSource::Inline(Base64::from_bytes(&memory)),
        };
        let mut media = Media::new(source, None).with_kind(MediaKind::Other);
        media.hints.filename = filename;
        Ok(media)
    }

    /// A name of our own making; the sender's is only told on.
    fn place(&mut self) -> Result<String, Refusal> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => tempfile::tempdir().map_err(|error| own(&error))?,
        };
        let path = folder.path().join(format!("file-{}", self.files.len()));
        self.folder = Some(folder);
        let path = path.into_os_string().into_string();
        path.map_err(|_| own(&io::Error::other("the folder has no name in letters")))
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
    pub(super) fn make_number(&mut self, key: &str) -> Result<(), Refusal> {
        let Some(Value::String(text)) = self.fields.get(key) else {
            return Ok(());
        };
        let number: serde_json::Number = text.trim().parse().map_err(|_| {
            let body = ErrorBody::new(Code::E1001, format!("`{key}` is not a number"));
            Refusal::new(body.detail("pointer", format!("/{key}")))
        })?;
        self.fields.insert(String::from(key), Value::Number(number));
        Ok(())
    }
}

async fn text(field: &mut Field<'_>) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(|error| unreadable(&error))? {
        if bytes.len() + piece.len() > limits::FORM_TEXT_BYTES_MAX {
            let allowed = limits::FORM_TEXT_BYTES_MAX;
            let message = format!("a field of the form exceeds {allowed} bytes");
            return Err(Refusal::new(
                ErrorBody::new(Code::E1005, message).detail("allowed", allowed),
            ));
        }
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes)
        .map_err(|_| Refusal::new(ErrorBody::new(Code::E1000, "a field of the form is not text")))
}

fn unreadable(error: &multer::Error) -> Refusal {
    match error {
        multer::Error::StreamSizeExceeded { limit } | multer::Error::FieldSizeExceeded { limit, .. } => {
            let body = ErrorBody::new(Code::E1005, format!("the body exceeds {limit} bytes"));
            Refusal::new(body.detail("allowed", *limit))
        }
        _ => Refusal::new(ErrorBody::new(Code::E1000, "the form cannot be read to its end")),
    }
}

fn own(error: &io::Error) -> Refusal {
    tracing::error!(%error, "a file of a form could not be kept");
    Refusal::new(ErrorBody::new(Code::E4000, "the file could not be kept"))
}
