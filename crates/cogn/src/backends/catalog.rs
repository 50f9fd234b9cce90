//! The configured back-ends: for each a candidate for the router and the instances that are called. Back-ends
//! with the same connect timeout share a client.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use engine::fleet::{self, Member};
use engine::port::Upstream;
use engine::route::Candidate;
use ir::operation::{Operation, Transport};
use module::diagnostic::nearest;
use providers::{Client, ClientOptions, HttpOptions, HttpUpstream, RateLimited, RequestWindow};
use secrecy::SecretString;
use serde_json::json;
use spill::SpillStore;

use super::{local, program, scripted};
use crate::config::{self, Backend, BackendKind, Settings};
use crate::output::hinted;

/// Size limit of a certificate file.
const CA_BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct BackendCatalog {
    settings: Settings,
    /// Stores the media of answers.
    spill: SpillStore,
    /// The proxy and the certificates, or why they cannot be used.
    client_options: Result<ClientOptions, String>,
    /// By connect timeout in milliseconds.
    clients: Mutex<HashMap<u64, Client>>,
}

/// A back-end of the configuration.
#[derive(Debug)]
pub(crate) struct ConfiguredBackend {
    pub(crate) candidate: Candidate,
    pub(crate) base_url: Option<String>,
    /// Limit of calls per minute, over all its keys.
    per_minute: Option<u32>,
    /// One for each of its keys.
    pub(crate) instances: Result<Vec<Instance>, Unavailable>,
}

/// A callable instance of a back-end.
#[derive(Clone, Debug)]
pub(crate) enum Instance {
    Http(HttpUpstream),
    Program(program::InstalledProgram),
    Other(Arc<dyn Upstream>),
}

/// Why a back-end cannot be called, and how to fix it.
#[derive(Clone, Debug)]
pub(crate) struct Unavailable {
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
}

impl From<String> for Unavailable {
    fn from(reason: String) -> Self {
        Self { reason, hint: None }
    }
}

impl Instance {
    pub(crate) fn upstream(&self) -> Arc<dyn Upstream> {
        match self {
            Self::Http(http) => Arc::new(http.clone()),
            Self::Program(program) => Arc::new(program.command.clone()),
            Self::Other(upstream) => upstream.clone(),
        }
    }
}

impl ConfiguredBackend {
    pub(crate) fn is_usable(&self) -> bool {
        self.instances.is_ok() && self.candidate.weight > 0
    }

    /// The same after a trial, if it has one: a program may be installed without its dependencies.
    pub(crate) async fn tried(mut self) -> Self {
        let first = self.instances.as_ref().ok().and_then(|all| all.first());
        let trial = match first {
            Some(Instance::Program(program)) => program.trial().await,
            _ => Ok(()),
        };
        if let Err(why) = trial {
            self.instances = Err(why);
        }
        self
    }

    pub(crate) fn into_members(self) -> Vec<Member> {
        match self.instances {
            Ok(instances) => {
                let pace = self
                    .per_minute
                    .map(|per_minute| Arc::new(RequestWindow::new(per_minute)));
                let upstreams = instances.iter().map(|instance| match &pace {
                    Some(pace) => {
                        Arc::new(RateLimited::new(instance.upstream(), pace.clone())) as Arc<dyn Upstream>
                    }
                    None => instance.upstream(),
                });
                Member::pool(&self.candidate, upstreams.collect())
            }
            Err(unavailable) => vec![Member::unavailable(self.candidate, unavailable.reason)],
        }
    }
}

impl BackendCatalog {
    pub(crate) fn new(settings: Settings, spill: SpillStore) -> Result<Self> {
        let way = way(&settings);
        Ok(Self {
            settings,
            spill,
            client_options: way,
            clients: Mutex::default(),
        })
    }

    /// Why the proxy or the certificates cannot be used.
    pub(crate) fn way_problem(&self) -> Option<&str> {
        self.client_options.as_ref().err().map(String::as_str)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How the fleet handles back-ends that fail or are slow.
    pub(crate) fn fleet_settings(&self) -> fleet::Settings {
        let general = self.settings.timeouts;
        // Each instance enforces its own timeouts; the fleet's are the maximum, so that they never apply
        // first.
        let all = self.settings.backends.iter();
        let all: Vec<_> = all.map(|backend| general.with(backend.timeouts)).collect();
        let widest = |of: fn(&config::TimeoutSettings) -> u64| all.iter().chain([&general]).map(of).max();
        let timeouts = fleet::Timeouts {
            first_byte_ms: widest(|t| t.connect_ms.saturating_add(t.first_byte_ms)).unwrap_or_default(),
            idle_ms: widest(|t| t.idle_ms).unwrap_or_default(),
            total_ms: widest(|t| t.total_ms).unwrap_or_default(),
        };
        self.settings.routing.fleet(timeouts)
    }

    /// Every back-end, whether it can be called or not.
    pub(crate) fn all(&self) -> Vec<ConfiguredBackend> {
        let backends = self.settings.backends.iter();
        backends.map(|backend| self.listed(backend)).collect()
    }

    pub(crate) fn named(&self, wanted: &str) -> Result<ConfiguredBackend> {
        let backends = &self.settings.backends;
        let found = backends.iter().find(|backend| backend.name == *wanted);
        if found.is_none() && wanted == local::NAME {
            // The embedded model is available without configuration.
            let backend = serde_json::from_value(json!({"name": local::NAME, "kind": "local"}))?;
            return Ok(self.listed(&backend));
        }
        let backend = found.ok_or_else(|| {
            let known: Vec<_> = backends.iter().map(|backend| backend.name.as_str()).collect();
            let hint = match nearest(wanted, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => {
                    String::from("no back-ends are configured; see `cogn config show`")
                }
                None => format!("configured: {}", known.join(", ")),
            };
            hinted(format!("unknown back-end `{wanted}` (E4001)"), hint)
        })?;
        Ok(self.listed(backend))
    }

    fn listed(&self, backend: &Backend) -> ConfiguredBackend {
        let mut candidate = Candidate::new(&backend.name, backend.kind.as_str(), Operation::ChatCompletions);
        candidate.model.clone_from(&backend.model);
        candidate.operations = backend.operations();
        candidate.features = backend.features();
        if matches!(
            backend.kind,
            BackendKind::Local | BackendKind::Command | BackendKind::Scripted
        ) {
            candidate.transports.insert(Transport::InProcess);
        }
        candidate.weight = backend.weight;
        candidate.priority = backend.priority;
        candidate.region.clone_from(&backend.region);
        candidate.price = backend.price();
        candidate.generation.clone_from(&backend.generation);
        candidate.inflight_max = backend.limits.inflight;
        let instances = self.instances(backend);
        // For a weights file the model name is the name in the file, not the local path.
        if let (BackendKind::Local, Ok([Instance::Other(upstream)])) = (backend.kind, instances.as_deref()) {
            candidate.model.clone_from(&upstream.backend().model);
        }
        ConfiguredBackend {
            candidate,
            base_url: backend.base_url.clone(),
            per_minute: backend.limits.requests_per_minute,
            instances,
        }
    }

    fn instances(&self, backend: &Backend) -> Result<Vec<Instance>, Unavailable> {
        let make = match backend.kind {
            BackendKind::Scripted => {
                let path = backend.script.as_deref();
                let path = path.ok_or_else(|| String::from("`script` is not set"))?;
                let upstream = scripted(&backend.name, path).map_err(|error| format!("{error:#}"))?;
                return Ok(vec![Instance::Other(upstream)]);
            }
            BackendKind::Local => return Ok(vec![Instance::Other(local::open(backend)?)]),
            BackendKind::Command => {
                let timeouts = self.settings.timeouts.with(backend.timeouts);
                return Ok(vec![program::open(backend, timeouts.total_ms, &self.spill)?]);
            }
            BackendKind::Openai => providers::openai,
            BackendKind::Anthropic => providers::anthropic,
            BackendKind::Gemini => providers::gemini,
            BackendKind::Ollama => providers::ollama,
        };
        let timeouts = self.settings.timeouts.with(backend.timeouts);
        let client = self.client(timeouts.connect_ms)?;
        let keys = self.keys(backend)?;
        let instances = keys.into_iter().map(|key| {
            let options = HttpOptions {
                spill: self.spill.clone(),
                ..options(backend, key, timeouts)
            };
            Instance::Http(make(client.clone(), options))
        });
        Ok(instances.collect())
    }

    /// The keys that are available; a missing key is an error only if no other is available.
    fn keys(&self, backend: &Backend) -> Result<Vec<Option<SecretString>>, String> {
        let names = backend.keys();
        if names.is_empty() {
            return Ok(vec![None]);
        }
        let (mut keys, mut missing) = (Vec::new(), None);
        for key in names.into_iter().map(|name| self.key(name)) {
            match key {
                Ok(key) => keys.push(Some(key)),
                Err(reason) => missing = missing.or(Some(reason)),
            }
        }
        match missing {
            Some(reason) if keys.is_empty() => Err(reason),
            _ => Ok(keys),
        }
    }

    fn key(&self, name: &str) -> Result<SecretString, String> {
        let known = self.settings.credential(name);
        let known = known.ok_or_else(|| format!("unknown credential `{name}`"))?;
        config::resolve(known)
    }

    fn client(&self, connect_ms: u64) -> Result<Client, String> {
        let way = self.client_options.clone()?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&connect_ms) {
            return Ok(client.clone());
        }
        let options = ClientOptions {
            connect_timeout: Some(Duration::from_millis(connect_ms)),
            ..way
        };
        let client = Client::new(&options).map_err(|error| error.to_string())?;
        clients.insert(connect_ms, client.clone());
        Ok(client)
    }
}

fn options(backend: &Backend, key: Option<SecretString>, timeouts: config::TimeoutSettings) -> HttpOptions {
    let usual = match backend.kind {
        BackendKind::Anthropic => providers::anthropic::BASE_URL,
        BackendKind::Gemini => providers::gemini::BASE_URL,
        BackendKind::Ollama => providers::ollama::BASE_URL,
        BackendKind::Openai | BackendKind::Local | BackendKind::Command | BackendKind::Scripted => {
            providers::openai::BASE_URL
        }
    };
    HttpOptions {
        name: backend.name.clone(),
        base_url: backend.base_url.clone().unwrap_or_else(|| String::from(usual)),
        model: backend.model.clone(),
        default_model: backend.default_model.clone(),
        key,
        operations: backend.operations(),
        features: backend.features(),
        timeouts: providers::Timeouts {
            first_byte: Duration::from_millis(timeouts.first_byte_ms),
            idle: Duration::from_millis(timeouts.idle_ms),
            total: Duration::from_millis(timeouts.total_ms),
        },
        headers: backend.headers.clone(),
        ..HttpOptions::default()
    }
}

/// The proxy and the certificates.
pub(super) fn way(settings: &Settings) -> Result<ClientOptions, String> {
    let mut ca_pem = Vec::new();
    for path in &settings.network.ca_files {
        let shown = path.display();
        let unreadable = |error| format!("cannot read the certificates in {shown}: {error}");
        if fs::metadata(path).map_err(unreadable)?.len() > CA_BYTES_MAX {
            return Err(format!("{shown} is too large for a certificate file"));
        }
        ca_pem.push(fs::read(path).map_err(unreadable)?);
    }
    Ok(ClientOptions {
        connect_timeout: None,
        proxy: config::proxy(settings)?,
        ca_pem,
    })
}
