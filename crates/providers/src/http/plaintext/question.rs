//! A question as it goes out: its first lines are made once for an address, and the rest are the caller's. Names and
//! values of headers are checked where they are made, so that none can end a line. Nothing of the answer.

use std::sync::Arc;

use reqwest::header::{
    ACCEPT, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, USER_AGENT,
};
use ureq_proto::http::Uri;

use super::super::client::AGENT;
use super::Broken;
use crate::limits::REQUEST_HEAD_BYTES_MAX;

/// Room for the head of a question, in which nearly all find place.
const HEAD_BYTES: usize = 512;

/// Where to ask, in the form in which it is asked.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// What is asked for, up to the end of its line.
    line: Arc<str>,
    /// Who is asked, as it is said to them.
    name: HeaderValue,
    /// Host and port, as they are resolved; connections are kept under this name.
    pub(super) host: Arc<str>,
}

impl Address {
    /// `None`: it is not one that is reached like this.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        // URLs with credentials are left to the other client, which sends them.
        let plain = uri.scheme_str() == Some("http") && !authority.as_str().contains('@');
        let (host, port) = (authority.host(), authority.port_u16().unwrap_or(80));
        if !plain || host.is_empty() {
            return None;
        }
        let path = uri
            .path_and_query()
            .map_or_else(|| String::from("/"), ToString::to_string);
        let full = format!("{host}:{port}");
        let name = if port == 80 { host } else { &full };
        Some(Self {
            line: format!("POST {path} HTTP/1.1\r\n").into(),
            name: HeaderValue::from_str(name).ok()?,
            host: full.into(),
        })
    }

    /// The question, head and content.
    pub(super) fn question(&self, headers: &HeaderMap, content: &[u8]) -> Result<Vec<u8>, Broken> {
        let mut text = Vec::with_capacity(HEAD_BYTES + content.len());
        text.extend_from_slice(self.line.as_bytes());
        // How long it is and how it is sent is not the caller's to say.
        put(&mut text, &CONTENT_LENGTH, &HeaderValue::from(content.len()));
        let own = headers
            .iter()
            .filter(|(name, _)| *name != CONTENT_LENGTH && *name != TRANSFER_ENCODING);
        for (name, value) in own {
            put(&mut text, name, value);
        }
        let agent = HeaderValue::from_static(AGENT);
        let usual = [
            (HOST, &self.name),
            (USER_AGENT, &agent),
            (ACCEPT, &HeaderValue::from_static("*/*")),
        ];
        for (name, value) in usual {
            if !headers.contains_key(&name) {
                put(&mut text, &name, value);
            }
        }
        text.extend_from_slice(b"\r\n");
        if text.len() > REQUEST_HEAD_BYTES_MAX {
            return Err(Broken::LargeHead);
        }
        text.extend_from_slice(content);
        Ok(text)
    }
}

fn put(text: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    text.extend_from_slice(name.as_str().as_bytes());
    text.extend_from_slice(b": ");
    text.extend_from_slice(value.as_bytes());
    text.extend_from_slice(b"\r\n");
}
