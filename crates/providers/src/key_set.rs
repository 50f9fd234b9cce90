//! Fetches a set of signing keys over HTTPS. This file does not depend on the use of the keys.

use async_trait::async_trait;
use hyper::header::HeaderMap;
use ir::Error;
use tenancy::JwksSource;
use tokio::time::{Instant, timeout};
use url::Url;

use crate::http::{Client, collect};
use crate::limits;

#[derive(Debug)]
pub struct KeySetUrl {
    client: Client,
    url: Url,
}

impl KeySetUrl {
    /// A manipulated response would allow forged signatures, so the URL must be HTTPS or on this host.
    pub fn new(client: Client, url: &str) -> Result<Self, String> {
        let url: Url = url
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
        let fetching = async {
            let deadline = Instant::now() + limits::KEY_SET_TIME_MAX;
            let answer = self.client.get(self.url.as_str(), HeaderMap::new()).await?;
            if !(200..300).contains(&answer.status) {
                return Ok(Err(format!("the answer has status {}", answer.status)));
            }
            let body = collect(
                answer,
                limits::KEY_SET_BYTES_MAX,
                limits::KEY_SET_TIME_MAX,
                deadline,
            )
            .await?;
            Ok(String::from_utf8(body).map_err(|error| error.to_string()))
        };
        match timeout(limits::KEY_SET_TIME_MAX, fetching).await {
            Ok(fetched) => fetched.unwrap_or_else(|error: Error| Err(error.message)),
            Err(_) => Err(format!(
                "no answer after {} ms",
                limits::KEY_SET_TIME_MAX.as_millis()
            )),
        }
    }
}
