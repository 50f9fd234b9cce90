//! The bytes of media to be sent: from memory, or read piece by piece from a media handle.

use bytes::Bytes;
use ir::media::{MediaHandle, StoredRef};
use ir::{Error, Media, MediaSource};

#[derive(Clone, Debug)]
pub(super) enum MediaContent {
    Inline(Bytes),
    Handle(MediaHandle),
}

impl MediaContent {
    pub(super) fn of(media: &Media) -> Result<Self, Error> {
        match &media.source {
            MediaSource::Inline(data) => {
                let bytes = data.decode();
                let bytes = bytes.map_err(|_| Error::invalid_request("the media is not base64"))?;
                Ok(Self::Inline(Bytes::from(bytes)))
            }
            MediaSource::Stored(StoredRef::Handle(held)) => Ok(Self::Handle(held.clone())),
            MediaSource::Stored(_)
            | MediaSource::Remote(_)
            | MediaSource::LocalFile(_)
            | MediaSource::ProviderFile { .. } => {
                let message = "the media has to be fetched before it can be sent";
                Err(Error::invalid_request(message))
            }
        }
    }

    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Handle(held) => held.size_bytes(),
        }
    }
}
