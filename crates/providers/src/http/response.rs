//! An HTTP response: its head, and its body piece by piece. Dropping a body before its end closes its
//! connection.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderName};
use ir::Error;

use super::client::UnsentRequestGuard;
use super::transport_error;

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(super) headers: HeaderMap,
    pub(crate) content: ResponseBody,
}

#[derive(Debug)]
pub(crate) struct ResponseBody {
    body: Incoming,
    _unsent: UnsentRequestGuard,
}

impl ResponseBody {
    /// `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        loop {
            match self.body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(bytes) if !bytes.is_empty() => return Some(Ok(bytes)),
                    // Trailers.
                    _ => {}
                },
                Err(error) => return Some(Err(transport_error::broken_body(&error))),
            }
        }
    }
}

impl HttpResponse {
    pub(super) fn new(response: Response<Incoming>, unsent: UnsentRequestGuard) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            content: ResponseBody {
                body,
                _unsent: unsent,
            },
        }
    }

    pub(super) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The announced content length.
    pub(super) fn length(&self) -> Option<u64> {
        self.header(&CONTENT_LENGTH)?.parse().ok()
    }
}
