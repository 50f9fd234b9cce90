//! Fetches a set of signing keys over HTTPS. This file does not depend on the use of the keys.

use async_trait::async_trait;
use futures::StreamExt;
use tenancy::JwksSource;

use crate::http::Client;
use crate::limits;

#[derive(Debug)]
pub struct KeySetUrl {
    client: Client,
    url: reqwest::Url,
}

impl KeySetUrl {
    /// A manipulated response would allow forged signatures, so the URL must be HTTPS or on this host.
    pub fn new(client: Client, url: &str) -> Result<Self, String> {
        let url: reqwest::Url = url
            .parse()
            .map_err(|error| format!("`{url}` is not a URL: {error}"))?;
        let host = url.host_str().unwrap_or_default();
        let here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        match url.scheme() {
            "https" => {}
            "http" if here => {}
            _ => return Err(format!("keys must be fetched over https, not from {url}")),
        }
        Ok(Self { client, url })
    }
}

#[async_trait]
impl JwksSource for KeySetUrl {
    fn location(&self) -> String {
        self.url.to_string()
    }

    async fn fetch(&self) -> Result<String, String> {
        let request = self
            .client
            .reqwest
            .get(self.url.clone())
            .timeout(limits::KEY_SET_TIME_MAX);
        let answer = request.send().await.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("the answer has status {}", answer.status()));
        }
        let mut bytes = Vec::new();
        let mut pieces = answer.bytes_stream();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece.map_err(|error| error.to_string())?);
            if bytes.len() > limits::KEY_SET_BYTES_MAX {
                return Err(format!("it is larger than {} bytes", limits::KEY_SET_BYTES_MAX));
            }
        }
        String::from_utf8(bytes).map_err(|error| error.to_string())
    }
}
