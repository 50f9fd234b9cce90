//! The configuration as types, one file per section. Every key is used; the JSON schema describes the same
//! keys and rejects all others.

mod alias;
mod auth_and_limits;
mod backend;
pub(crate) mod gate;
mod mcp;
mod media;
mod network;
mod program;
mod routing;
mod server;
mod traces;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

use super::layer::Origin;
use super::merged::Merged;
use super::schema::problems;
use crate::output::hinted;

pub(crate) use alias::Alias;
pub(crate) use auth_and_limits::{Auth, Journal, Jwt, Limits, Store};
pub(crate) use backend::{Backend, BackendKind, TimeoutOverrides};
pub(crate) use gate::{Gate, GateAction, GateRule};
pub(crate) use mcp::McpSettings;
pub(crate) use media::{Fetch as MediaFetch, Media, Oversize as MediaOversize};
pub(crate) use network::Network;
pub(crate) use program::Program;
pub(crate) use routing::Routing;
pub(crate) use server::{LogFormat, Server};
pub(crate) use traces::Traces;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    #[serde(default)]
    pub(crate) credentials: Vec<CredentialSettings>,
    #[serde(default)]
    pub(crate) backends: Vec<Backend>,
    pub(crate) timeouts: TimeoutSettings,
    #[serde(default)]
    pub(crate) routing: Routing,
    /// Additional model names for vendors' clients.
    #[serde(default)]
    pub(crate) aliases: BTreeMap<String, Alias>,
    #[serde(default)]
    pub(crate) network: Network,
    #[serde(default)]
    pub(crate) gate: Gate,
    pub(crate) media: Media,
    pub(crate) auth: Auth,
    pub(crate) limits: Limits,
    #[serde(default)]
    pub(crate) store: Store,
    pub(crate) journal: Journal,
    pub(crate) server: Server,
    pub(crate) mcp: McpSettings,
    pub(crate) traces: Traces,
}

/// A named reference to a secret.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CredentialSettings {
    pub(crate) name: String,
    /// The environment variable with the secret.
    pub(crate) env: Option<String>,
    /// The file with the secret.
    pub(crate) file: Option<PathBuf>,
}

/// Separate timeouts, so that a slow first token and a stalled stream are distinguished.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeoutSettings {
    pub(crate) connect_ms: u64,
    pub(crate) first_byte_ms: u64,
    pub(crate) idle_ms: u64,
    pub(crate) total_ms: u64,
}

impl TimeoutSettings {
    /// These timeouts with the overrides of a back-end.
    pub(crate) fn with(self, own: Option<TimeoutOverrides>) -> Self {
        let own = own.unwrap_or_default();
        Self {
            connect_ms: own.connect_ms.unwrap_or(self.connect_ms),
            first_byte_ms: own.first_byte_ms.unwrap_or(self.first_byte_ms),
            idle_ms: own.idle_ms.unwrap_or(self.idle_ms),
            total_ms: own.total_ms.unwrap_or(self.total_ms),
        }
    }
}

impl Settings {
    /// Deserialises a valid tree; the error contains all problems.
    pub(crate) fn of(merged: &Merged) -> Result<Self> {
        let problems = problems(merged)?;
        if !problems.is_empty() {
            let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
            let message = format!("the configuration is invalid:\n  {}", lines.join("\n  "));
            return Err(hinted(
                message,
                "`cogn config check` shows the problems with hints",
            ));
        }
        let mut settings: Self = serde_json::from_value(Value::Object(merged.tree.clone()))?;
        settings.anchor(merged);
        Ok(settings)
    }

    /// Resolves relative paths: in a file, against the folder of the file; in a variable, against the working
    /// folder.
    fn anchor(&mut self, merged: &Merged) {
        let anchor = |pointer: String, path: &mut PathBuf| {
            if let Some(Origin::File { path: file, .. }) = merged.origin(&pointer) {
                *path = file.parent().unwrap_or_else(|| Path::new("")).join(&*path);
            }
        };
        for (index, credential) in self.credentials.iter_mut().enumerate() {
            if let Some(path) = &mut credential.file {
                anchor(format!("/credentials/{index}/file"), path);
            }
        }
        for (index, backend) in self.backends.iter_mut().enumerate() {
            if let Some(path) = &mut backend.script {
                anchor(format!("/backends/{index}/script"), path);
            }
            if let Some(program) = backend.own_program_path() {
                let mut path = PathBuf::from(program);
                anchor(format!("/backends/{index}/command/argv"), &mut path);
                backend.set_program_path(&path);
            }
            let is_file = |model: &&mut String| model.ends_with(".gguf");
            if backend.kind == BackendKind::Local
                && let Some(model) = backend.model.as_mut().filter(is_file)
            {
                let mut path = PathBuf::from(&*model);
                anchor(format!("/backends/{index}/model"), &mut path);
                *model = path.display().to_string();
            }
        }
        for (index, path) in self.network.ca_files.iter_mut().enumerate() {
            anchor(format!("/network/ca_files/{index}"), path);
        }
        if let Some(tls) = &mut self.server.tls {
            anchor(String::from("/server/tls/certificate"), &mut tls.certificate);
            anchor(String::from("/server/tls/key"), &mut tls.key);
        }
        if let Some(jwt) = self.auth.jwt.as_mut().filter(|jwt| !jwt.jwks.contains("://")) {
            let mut path = PathBuf::from(&jwt.jwks);
            anchor(String::from("/auth/jwt/jwks"), &mut path);
            jwt.jwks = path.display().to_string();
        }
        for (index, path) in self.media.roots.iter_mut().enumerate() {
            anchor(format!("/media/roots/{index}"), path);
        }
    }

    /// Names of settings that differ in `other` and cannot be changed without a restart.
    pub(crate) fn fixed_that_differ(&self, other: &Self) -> Vec<&'static str> {
        let (old, new) = (&self.server, &other.server);
        let differs = [
            ("server.listen", old.listen != new.listen),
            ("server.log", old.log != new.log),
            ("server.reload_ms", old.reload_ms != new.reload_ms),
            (
                "server.connections_max",
                old.connections_max != new.connections_max,
            ),
            (
                "server.body_memory_bytes_max",
                old.body_memory_bytes_max != new.body_memory_bytes_max,
            ),
            (
                "server.connections_per_address_max",
                old.connections_per_address_max != new.connections_per_address_max,
            ),
            (
                "server.trusted_proxies",
                old.trusted_proxies != new.trusted_proxies,
            ),
            ("server.header_read_ms", old.header_read_ms != new.header_read_ms),
            ("server.write_stall_ms", old.write_stall_ms != new.write_stall_ms),
            ("server.tls", old.tls != new.tls),
            ("store", self.store != other.store),
            ("journal", self.journal != other.journal),
            ("traces", self.traces != other.traces),
        ];
        let differing = differs.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(name, _)| name).collect()
    }

    /// The gateway settings of a server with this address.
    pub(crate) fn gateway(&self, listen: SocketAddr) -> gateway::Settings {
        gateway::Settings {
            mcp_confirm: self.mcp.confirm,
            ..self.server.gateway(listen, &self.aliases)
        }
    }

    pub(crate) fn credential(&self, name: &str) -> Option<&CredentialSettings> {
        self.credentials.iter().find(|credential| credential.name == name)
    }
}
