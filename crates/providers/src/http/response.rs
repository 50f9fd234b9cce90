//! The HTTP response from either client: its head, and its body piece by piece.

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use ir::{Error, Phase};
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderName};

use super::{plaintext, transport_error};

#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) content: ResponseBody,
}

pub(super) enum ResponseBody {
    Plain(plaintext::Body),
    Reqwest(BoxStream<'static, reqwest::Result<Bytes>>),
}

impl ResponseBody {
    /// `None` at the end of the body.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        match self {
            Self::Plain(body) => {
                let piece = body.next().await?;
                Some(piece.map_err(|error| transport_error::plain(&error, Phase::MidStream)))
            }
            Self::Reqwest(pieces) => {
                let piece = pieces.next().await?;
                Some(piece.map_err(|error| transport_error::transport(&error, Phase::MidStream)))
            }
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Content")
    }
}

impl HttpResponse {
    pub(super) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The announced content length.
    pub(super) fn length(&self) -> Option<u64> {
        self.header(&CONTENT_LENGTH)?.parse().ok()
    }
}

impl From<reqwest::Response> for HttpResponse {
    fn from(mut response: reqwest::Response) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            content: ResponseBody::Reqwest(response.bytes_stream().boxed()),
        }
    }
}
