//! The bytes of media on their way to a server: from memory, or read from a file piece by piece.

use std::path::PathBuf;

use bytes::Bytes;
use ir::{Error, ErrorKind, Media, MediaSource, Phase};

#[derive(Clone, Debug)]
pub(super) enum Content {
    Here(Bytes),
    /// A file of our own, and how long it is.
    File {
        path: PathBuf,
        length: u64,
    },
}

impl Content {
    pub(super) async fn of(media: &Media) -> Result<Self, Error> {
        match &media.source {
            MediaSource::Inline(data) => {
                let bytes = data.decode();
                let bytes = bytes.map_err(|_| Error::invalid_request("the media is not base64"))?;
                Ok(Self::Here(Bytes::from(bytes)))
            }
            // Only the host makes these: no request can name a file.
            MediaSource::LocalFile(path) => {
                let path = PathBuf::from(path);
                let gone = |_| Error::new(ErrorKind::Internal, Phase::BeforeSend, "the media is not here");
                let length = tokio::fs::metadata(&path).await.map_err(gone)?.len();
                Ok(Self::File { path, length })
            }
            MediaSource::Stored(_) | MediaSource::Remote(_) | MediaSource::ProviderFile { .. } => {
                let message = "the media has to be brought here before it can be sent";
                Err(Error::invalid_request(message))
            }
        }
    }

    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }
}
