//! A URL as far as it may be followed: the scheme, the port, and a host that is a public address or a name
//! that could be one. What a URL parser makes of odd spellings is what is judged, so a spelling hides
//! nothing.

use std::net::{IpAddr, SocketAddr};

use engine::port::{FetchError, Hosts};
use url::{Host, Url};

use crate::limits::FETCH_URL_BYTES_MAX;

/// Names that mean one's own machine or network, whatever a resolver says.
const OWN_NAMES: &[&str] = &[
    "localhost",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "localdomain",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
    "onion",
];

#[derive(Clone, Debug)]
pub(super) struct FetchTarget {
    pub(super) url: Url,
    pub(super) host: HostKind,
    pub(super) port: u16,
    /// It was opened by the person who runs this, wherever it is.
    pub(super) is_private_allowed: bool,
}

/// Where one may knock.
#[derive(Clone, Debug, Default)]
pub(super) struct AllowedEndpoints {
    pub(super) ports: Vec<u16>,
    /// `host:port` in one's own network.
    pub(super) inside: Vec<String>,
}

impl AllowedEndpoints {
    fn inside(&self, host: &HostKind, port: u16) -> bool {
        let asked = match host {
            HostKind::Name(name) => format!("{name}:{port}"),
            HostKind::Address(address) => SocketAddr::new(*address, port).to_string(),
        };
        self.inside.iter().any(|open| open.eq_ignore_ascii_case(&asked))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostKind {
    Address(IpAddr),
    /// In lower case, without a dot at its end.
    Name(String),
}

fn blocked(why: &str) -> FetchError {
    FetchError::Blocked(String::from(why))
}

impl FetchTarget {
    pub(super) fn parse(text: &str, hosts: &Hosts, doors: &AllowedEndpoints) -> Result<Self, FetchError> {
        if text.len() > FETCH_URL_BYTES_MAX {
            return Err(blocked("the URL is longer than any honest one"));
        }
        // Parsers mend these, each in its own way: what one reads is not what another reached.
        if text
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || c == '\\')
        {
            return Err(blocked("the URL holds spaces, control characters or backslashes"));
        }
        let url = Url::parse(text).map_err(|error| blocked(&error.to_string()))?;
        check_spelling(&url, text)?;
        Self::of(url, hosts, doors)
    }

    /// Where a redirect leads, seen from here.
    pub(super) fn redirect(&self, location: &str, hosts: &Hosts, doors: &AllowedEndpoints) -> Result<Self, FetchError> {
        let url = self
            .url
            .join(location)
            .map_err(|error| blocked(&error.to_string()))?;
        if self.url.scheme() == "https" && url.scheme() != "https" {
            return Err(blocked("the redirect leaves https"));
        }
        if url.host() != self.url.host() {
            check_spelling(&url, location)?;
        }
        Self::of(url, hosts, doors)
    }

    fn of(mut url: Url, hosts: &Hosts, doors: &AllowedEndpoints) -> Result<Self, FetchError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(blocked("only http and https are fetched"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(blocked("the URL holds a user name or a password"));
        }
        let port = url.port_or_known_default().unwrap_or(0);
        let host = match url.host() {
            Some(Host::Ipv4(address)) => HostKind::Address(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => HostKind::Address(IpAddr::V6(address)),
            Some(Host::Domain(name)) => HostKind::Name(name.trim_end_matches('.').to_ascii_lowercase()),
            None => return Err(blocked("the URL names no host")),
        };
        let name = match &host {
            HostKind::Name(name) => name.clone(),
            HostKind::Address(address) => address.to_string(),
        };
        let inside = doors.inside(&host, port);
        if !inside {
            if !doors.ports.contains(&port) {
                return Err(blocked("the port is not one of the web"));
            }
            if matches!(host, HostKind::Name(_)) {
                check_name(&name)?;
            }
            if !hosts.allow(&name) {
                return Err(blocked("the host is not on the list"));
            }
        }
        if matches!(host, HostKind::Name(_)) {
            // One spelling goes on, so that the name that is asked for is the name that was judged.
            url.set_host(Some(&name))
                .map_err(|error| blocked(&error.to_string()))?;
        }
        url.set_fragment(None);
        Ok(Self {
            url,
            host,
            port,
            is_private_allowed: inside,
        })
    }

    pub(super) fn sockets(&self, addresses: &[IpAddr]) -> Vec<SocketAddr> {
        let socket = |address: &IpAddr| SocketAddr::new(*address, self.port);
        addresses.iter().map(socket).collect()
    }
}

/// An IPv4 address in octal, in hexadecimal or shortened is written by somebody who hides it.
fn check_spelling(url: &Url, text: &str) -> Result<(), FetchError> {
    match url.host() {
        Some(Host::Ipv4(address)) if !text.contains(&address.to_string()) => {
            Err(blocked("the address is not written in four numbers"))
        }
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), FetchError> {
    if !name.contains('.') || name.len() > 253 {
        return Err(blocked("the host is not a public name"));
    }
    let own = |own: &&str| name == *own || name.strip_suffix(own).is_some_and(|rest| rest.ends_with('.'));
    if OWN_NAMES.iter().any(own) {
        return Err(blocked("the host is a name of one's own network"));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if !name.bytes().all(plain) || name.split('.').any(str::is_empty) {
        return Err(blocked("the host is not a name"));
    }
    Ok(())
}
