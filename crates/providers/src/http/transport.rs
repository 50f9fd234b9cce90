//! Selects the client for a URL: the plaintext client where neither TLS nor a proxy is needed, else reqwest.
//! The response is the same.

use futures::FutureExt;
use ir::{Error, Phase};
use reqwest::Url;
use reqwest::header::HeaderMap;

use super::request_body::RequestBody;
use super::response::{HttpResponse, ResponseBody};
use super::{HttpInner, plaintext, transport_error};

/// A parsed URL and its transport.
#[derive(Debug)]
pub(super) struct ResolvedEndpoint {
    url: String,
    way: Transport,
}

#[derive(Clone, Debug)]
enum Transport {
    Plain(plaintext::Address),
    Reqwest(Url),
    /// The URL is invalid; the client reports this when it is called.
    Invalid,
}

impl HttpInner {
    /// Sends a request and waits for the response head.
    pub(super) async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        content: RequestBody,
    ) -> Result<HttpResponse, Error> {
        let route = self.route.get_or_init(|| ResolvedEndpoint {
            url: String::from(url),
            way: self.way(url),
        });
        let way = match route.url == url {
            true => route.way.clone(),
            false => self.way(url),
        };
        let layered = match (way, &content, &self.client.plaintext) {
            (Transport::Plain(address), RequestBody::Bytes(bytes), Some(client)) => {
                let asked = client.post(&address, &headers, bytes).await;
                let (head, body) =
                    asked.map_err(|error| transport_error::plain(&error, Phase::BeforeFirstByte))?;
                return Ok(HttpResponse {
                    status: head.status,
                    headers: head.headers,
                    content: ResponseBody::Plain(body),
                });
            }
            (Transport::Reqwest(url), ..) => self.client.reqwest.post(url),
            (Transport::Plain(_) | Transport::Invalid, ..) => self.client.reqwest.post(url),
        };
        // Boxed: large future that the plaintext path does not need.
        let asked = layered
            .headers(headers)
            .body(content.into_body())
            .send()
            .boxed()
            .await;
        asked
            .map(HttpResponse::from)
            .map_err(|error| transport_error::transport(&error, Phase::BeforeFirstByte))
    }

    fn way(&self, url: &str) -> Transport {
        let plain = self
            .client
            .plaintext
            .as_ref()
            .and_then(|_| plaintext::Address::of(url));
        match (plain, Url::parse(url)) {
            (Some(address), _) => Transport::Plain(address),
            (None, Ok(url)) => Transport::Reqwest(url),
            (None, Err(_)) => Transport::Invalid,
        }
    }
}
