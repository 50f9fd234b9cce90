//! Validates URLs before a fetch: the scheme, the port, and a host that is a public address or a possibly
//! public name. The checks use the parsed URL, so that unusual notations cannot bypass them.

use std::net::{IpAddr, SocketAddr};

use engine::port::{FetchError, Hosts};
use url::{Host, Url};

use crate::limits::FETCH_URL_BYTES_MAX;

/// Names of local hosts and networks, independent of their addresses.
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
    /// The operator allows this endpoint, whatever its address.
    pub(super) is_private_allowed: bool,
}

/// Endpoints that may be fetched from.
#[derive(Clone, Debug, Default)]
pub(super) struct AllowedEndpoints {
    pub(super) ports: Vec<u16>,
    /// `host:port` in the private network.
    pub(super) private_hosts: Vec<String>,
}

impl AllowedEndpoints {
    fn is_listed(&self, host: &HostKind, port: u16) -> bool {
        let asked = match host {
            HostKind::Name(name) => format!("{name}:{port}"),
            HostKind::Address(address) => SocketAddr::new(*address, port).to_string(),
        };
        self.private_hosts
            .iter()
            .any(|open| open.eq_ignore_ascii_case(&asked))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostKind {
    Address(IpAddr),
    /// In lower case, without a trailing dot.
    Name(String),
}

fn blocked(why: &str) -> FetchError {
    FetchError::Blocked(String::from(why))
}

impl FetchTarget {
    pub(super) fn parse(text: &str, hosts: &Hosts, doors: &AllowedEndpoints) -> Result<Self, FetchError> {
        if text.len() > FETCH_URL_BYTES_MAX {
            return Err(blocked("the URL is too long"));
        }
        // URL parsers normalize these differently, so that validation and connection could disagree.
        if text
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || c == '\\')
        {
            return Err(blocked(
                "the URL contains spaces, control characters or backslashes",
            ));
        }
        let url = Url::parse(text).map_err(|error| blocked(&error.to_string()))?;
        check_spelling(&url, text)?;
        Self::of(url, hosts, doors)
    }

    /// The target of a redirect relative to this URL.
    pub(super) fn redirect(
        &self,
        location: &str,
        hosts: &Hosts,
        doors: &AllowedEndpoints,
    ) -> Result<Self, FetchError> {
        let url = self
            .url
            .join(location)
            .map_err(|error| blocked(&error.to_string()))?;
        if self.url.scheme() == "https" && url.scheme() != "https" {
            return Err(blocked("the redirect is not https"));
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
            return Err(blocked("the URL contains a user name or a password"));
        }
        let port = url.port_or_known_default().unwrap_or(0);
        let host = match url.host() {
            Some(Host::Ipv4(address)) => HostKind::Address(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => HostKind::Address(IpAddr::V6(address)),
            Some(Host::Domain(name)) => HostKind::Name(name.trim_end_matches('.').to_ascii_lowercase()),
            None => return Err(blocked("the URL has no host")),
        };
        let name = match &host {
            HostKind::Name(name) => name.clone(),
            HostKind::Address(address) => address.to_string(),
        };
        let inside = doors.is_listed(&host, port);
        if !inside {
            if !doors.ports.contains(&port) {
                return Err(blocked("the port is not a web port"));
            }
            if matches!(host, HostKind::Name(_)) {
                check_name(&name)?;
            }
            if !hosts.allow(&name) {
                return Err(blocked("the host is not on the allow-list"));
            }
        }
        if matches!(host, HostKind::Name(_)) {
            // The request uses the normalized name that was validated.
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

/// An IPv4 address in octal, hexadecimal or shortened notation indicates an attempt to hide it.
fn check_spelling(url: &Url, text: &str) -> Result<(), FetchError> {
    match url.host() {
        Some(Host::Ipv4(address)) if !text.contains(&address.to_string()) => {
            Err(blocked("the address is not in dotted decimal notation"))
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
        return Err(blocked("the host is a private network name"));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if !name.bytes().all(plain) || name.split('.').any(str::is_empty) {
        return Err(blocked("the host is not a valid name"));
    }
    Ok(())
}
