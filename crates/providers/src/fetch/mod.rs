//! Fetches media from URLs of callers without access to the server's network (SSRF protection). A name is
//! resolved once; all of its addresses must be public; the connection is made to these addresses only; and
//! each redirect is validated like a new URL.

mod address;
mod resolve;
mod target;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::port::{Fetch, FetchError, Fetched, Hosts};
use futures::StreamExt;
use reqwest::Response;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use self::address::{is_own, is_public};
use self::resolve::{Resolve, SystemResolver};
use self::target::{AllowedEndpoints, FetchTarget, HostKind};
use crate::limits;

/// Web ports.
const PORTS: &[u16] = &[80, 443];

#[derive(Clone, Debug)]
pub struct GuardedFetch {
    resolver: Arc<dyn Resolve>,
    /// Whether an address may be reached. Always [`is_public`], except in tests.
    may_reach: fn(IpAddr) -> bool,
    doors: AllowedEndpoints,
}

impl Default for GuardedFetch {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl GuardedFetch {
    /// `private_hosts` are hosts of the private network, as `host:port`, that the operator allows callers to reach.
    /// All other addresses that are not public are refused.
    pub fn new(private_hosts: Vec<String>) -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            may_reach: is_public,
            doors: AllowedEndpoints {
                ports: PORTS.to_vec(),
                private_hosts,
            },
        }
    }
}

#[async_trait]
impl Fetch for GuardedFetch {
    async fn fetch(
        &self,
        url: &str,
        hosts: &Hosts,
        bytes_max: u64,
        out: &mut File,
    ) -> Result<Fetched, FetchError> {
        let total = Duration::from_millis(limits::FETCH_TOTAL_MS);
        let work = self.follow(url, hosts, bytes_max, out);
        timeout(total, work)
            .await
            .unwrap_or(Err(FetchError::Timeout(limits::FETCH_TOTAL_MS)))
    }

    async fn check(&self, url: &str, hosts: &Hosts) -> Result<(), FetchError> {
        let target = FetchTarget::parse(url, hosts, &self.doors)?;
        match self.addresses(&target).await {
            Err(FetchError::Blocked(reason)) => Err(FetchError::Blocked(reason)),
            _ => Ok(()),
        }
    }
}

impl GuardedFetch {
    async fn follow(
        &self,
        url: &str,
        hosts: &Hosts,
        bytes_max: u64,
        out: &mut File,
    ) -> Result<Fetched, FetchError> {
        let mut target = FetchTarget::parse(url, hosts, &self.doors)?;
        for _ in 0..=limits::FETCH_REDIRECTS_MAX {
            let response = self.ask(&target).await?;
            let status = response.status();
            if status.is_success() {
                return take(response, bytes_max, out).await;
            }
            let location = response
                .headers()
                .get(LOCATION)
                .filter(|_| status.is_redirection());
            let Some(location) = location else {
                return Err(FetchError::Status(status.as_u16()));
            };
            let location = location
                .to_str()
                .map_err(|_| FetchError::Blocked(String::from("the redirect location is not ASCII")))?;
            target = target.redirect(location, hosts, &self.doors)?;
        }
        Err(FetchError::TooManyRedirects(limits::FETCH_REDIRECTS_MAX))
    }

    /// One hop: validates the addresses, then connects to one of them.
    async fn ask(&self, target: &FetchTarget) -> Result<Response, FetchError> {
        let addresses = self.addresses(target).await?;
        let sockets = target.sockets(&addresses);
        let name = target.url.host_str().unwrap_or_default();
        let client = reqwest::Client::builder()
            .resolve_to_addrs(name, &sockets)
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(Duration::from_millis(limits::FETCH_CONNECT_MS))
            .read_timeout(Duration::from_millis(limits::FETCH_IDLE_MS))
            .pool_max_idle_per_host(0)
            .user_agent(concat!("cogn/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unreachable(&error))?;
        let call = client
            .get(target.url.clone())
            .header(ACCEPT, "image/*, audio/*, video/*, application/pdf, */*;q=0.1")
            // A decompressed body could exceed the size limit.
            .header(ACCEPT_ENCODING, "identity");
        let response = call.send().await.map_err(|error| unreachable(&error))?;
        // Defence in depth: the peer must be one of the validated addresses.
        match response.remote_addr() {
            Some(peer) if addresses.contains(&peer.ip()) => Ok(response),
            _ => Err(FetchError::Blocked(String::from(
                "the response came from another address",
            ))),
        }
    }

    /// The addresses of the host, if all of them may be reached. A name with a forbidden address is refused
    /// even if its other addresses are public, because this is a DNS rebinding technique.
    async fn addresses(&self, target: &FetchTarget) -> Result<Vec<IpAddr>, FetchError> {
        let addresses = match &target.host {
            HostKind::Address(address) => vec![*address],
            HostKind::Name(name) => {
                let resolve_timeout = Duration::from_millis(limits::FETCH_CONNECT_MS);
                let found = timeout(resolve_timeout, self.resolver.resolve(name)).await;
                let found = found.map_err(|_| FetchError::Timeout(limits::FETCH_CONNECT_MS))?;
                found.map_err(|error| FetchError::Unreachable(error.to_string()))?
            }
        };
        if addresses.is_empty() {
            return Err(FetchError::Unreachable(String::from("the name has no address")));
        }
        if addresses.len() > limits::FETCH_ADDRESSES_MAX {
            return Err(FetchError::Blocked(String::from(
                "the name has too many addresses",
            )));
        }
        let may_reach =
            |address: &IpAddr| (self.may_reach)(*address) || target.is_private_allowed && is_own(*address);
        if !addresses.iter().all(may_reach) {
            return Err(FetchError::Blocked(String::from("it is not a public address")));
        }
        Ok(addresses)
    }
}

/// Writes the body and enforces the size limit.
async fn take(response: Response, bytes_max: u64, out: &mut File) -> Result<Fetched, FetchError> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let content_type = header(CONTENT_TYPE).map(String::from);
    if header(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(FetchError::ContentType(String::from(
            "an encoding that was not requested",
        )));
    }
    let page = |kind: &String| kind.starts_with("text/html") || kind.starts_with("application/xhtml");
    if let Some(page) = content_type.as_ref().filter(|kind| page(kind)) {
        return Err(FetchError::ContentType(page.clone()));
    }
    let too_large = |actual| FetchError::TooLarge {
        allowed: bytes_max,
        actual,
    };
    if let Some(length) = response.content_length().filter(|length| *length > bytes_max) {
        return Err(too_large(length));
    }
    let mut size_bytes: u64 = 0;
    let mut bytes = response.bytes_stream();
    while let Some(piece) = bytes.next().await {
        let piece = piece.map_err(|error| unreachable(&error))?;
        size_bytes += piece.len() as u64;
        if size_bytes > bytes_max {
            return Err(too_large(size_bytes));
        }
        out.write_all(&piece)
            .await
            .map_err(|error| FetchError::Unreachable(format!("cannot store the response: {error}")))?;
    }
    let kept = out.flush().await;
    kept.map_err(|error| FetchError::Unreachable(format!("cannot store the response: {error}")))?;
    Ok(Fetched {
        content_type,
        size_bytes,
    })
}

/// Transport error without the URL, which may contain a token.
fn unreachable(error: &reqwest::Error) -> FetchError {
    if error.is_timeout() {
        return FetchError::Timeout(limits::FETCH_IDLE_MS);
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    FetchError::Unreachable(cause.to_string())
}
