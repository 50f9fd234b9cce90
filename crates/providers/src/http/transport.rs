//! Which way a question goes: straight over a connection without TLS where that is all it takes, else through the
//! client that knows proxies and TLS. What comes back is the same.

use futures::FutureExt;
use ir::{Error, Phase};
use reqwest::Url;
use reqwest::header::HeaderMap;

use super::outgoing::Outgoing;
use super::response::{Content, Reply};
use super::{Instance, transport_error, plaintext};

/// An address that was looked at once.
#[derive(Debug)]
pub(super) struct Route {
    url: String,
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Plain(plaintext::Address),
    Layered(Url),
    /// It cannot be read, which the client says when it is asked.
    Unknown,
}

impl Instance {
    /// Asks, and waits for the head of the answer.
    pub(super) async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        content: Outgoing,
    ) -> Result<Reply, Error> {
        let route = self.route.get_or_init(|| Route {
            url: String::from(url),
            way: self.way(url),
        });
        let way = match route.url == url {
            true => route.way.clone(),
            false => self.way(url),
        };
        let layered = match (way, &content, &self.client.plain) {
            (Way::Plain(address), Outgoing::Whole(bytes), Some(client)) => {
                let asked = client.post(&address, &headers, bytes).await;
                let (head, body) = asked.map_err(|error| transport_error::plain(&error, Phase::BeforeFirstByte))?;
                return Ok(Reply {
                    status: head.status,
                    headers: head.headers,
                    content: Content::Plain(body),
                });
            }
            (Way::Layered(url), ..) => self.client.layered.post(url),
            (Way::Plain(_) | Way::Unknown, ..) => self.client.layered.post(url),
        };
        // In a box: a question that goes straight does not carry its room.
        let asked = layered
            .headers(headers)
            .body(content.into_body())
            .send()
            .boxed()
            .await;
        asked
            .map(Reply::from)
            .map_err(|error| transport_error::transport(&error, Phase::BeforeFirstByte))
    }

    fn way(&self, url: &str) -> Way {
        let plain = self.client.plain.as_ref().and_then(|_| plaintext::Address::of(url));
        match (plain, Url::parse(url)) {
            (Some(address), _) => Way::Plain(address),
            (None, Ok(url)) => Way::Layered(url),
            (None, Err(_)) => Way::Unknown,
        }
    }
}
