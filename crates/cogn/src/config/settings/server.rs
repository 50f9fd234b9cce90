//! `[server]`: listen address, accepted origins and hosts, limits and timeouts of `cogn serve`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use gateway::Network;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::alias::Alias;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    /// Origins of browser pages that may send requests.
    pub(crate) cors_origins: Vec<String>,
    /// Additional accepted values of the `Host` header.
    pub(crate) hosts: Vec<String>,
    pub(crate) log: LogFormat,
    /// Interval of polling files for changes; 0 disables polling.
    pub(crate) reload_ms: u64,
    pub(crate) streams_per_client_max: usize,
    pub(crate) connections_max: usize,
    pub(crate) connections_per_address_max: Option<usize>,
    /// Addresses and ranges of proxies, without a limit per address.
    #[serde(deserialize_with = "networks")]
    pub(crate) trusted_proxies: Vec<Network>,
    pub(crate) header_read_ms: u64,
    pub(crate) body_read_ms: u64,
    /// Memory for request bodies that are being read, parsed or used by a call.
    pub(crate) body_memory_bytes_max: usize,
    pub(crate) write_stall_ms: u64,
    pub(crate) drain_ms: u64,
    /// How long a resumable stream continues without a reader.
    pub(crate) resume_grace_ms: u64,
    /// Whether canonical requests may request the raw responses of providers.
    pub(crate) raw_answers: bool,
    /// Whether canonical requests may patch the body that is sent to a back-end.
    pub(crate) request_patches: bool,
    pub(crate) tls: Option<TlsFiles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Network>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let networks = texts.iter().map(|text| text.parse().map_err(D::Error::custom));
    networks.collect()
}

impl Server {
    /// The gateway settings of a server with this address. On a loopback address only loopback host names are
    /// accepted, which prevents DNS rebinding.
    pub(crate) fn gateway(&self, listen: SocketAddr, aliases: &BTreeMap<String, Alias>) -> gateway::Settings {
        let mut hosts = self.hosts.clone();
        if listen.ip().is_loopback() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(String::from));
            hosts.push(listen.ip().to_string());
        }
        gateway::Settings {
            cors_origins: self.cors_origins.clone(),
            hosts,
            streams_per_client_max: self.streams_per_client_max,
            connections_max: self.connections_max,
            connections_per_address_max: self.connections_per_address_max,
            trusted_proxies: self.trusted_proxies.clone(),
            header_read: Duration::from_millis(self.header_read_ms),
            body_memory_bytes_max: self.body_memory_bytes_max,
            body_read: Duration::from_millis(self.body_read_ms),
            write_stall: Duration::from_millis(self.write_stall_ms),
            drain: Duration::from_millis(self.drain_ms),
            raw_answers: self.raw_answers,
            request_patches: self.request_patches,
            aliases: aliases
                .iter()
                .map(|(name, alias)| (name.clone(), alias.gateway()))
                .collect(),
            ..gateway::Settings::default()
        }
    }
}
