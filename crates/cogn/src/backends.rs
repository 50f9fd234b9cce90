//! Back-ends by name: from the configuration, or a script given on the command line. One whose secret is
//! missing is left out with its reason; the others still answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use engine::Fleet;
use engine::port::Upstream;
use ir::Feature;
use providers::scripted::Script;
use providers::{Client, HttpOptions, Scripted};

use crate::config::{self, Backend, BackendKind, Settings, Sources, Timeouts};
use crate::near::nearest;
use crate::output::hinted;

/// A back-end as it is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BackendName {
    Configured(String),
    Scripted(PathBuf),
}

impl FromStr for BackendName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("scripted", path)) if !path.is_empty() => Ok(Self::Scripted(PathBuf::from(path))),
            None if !text.is_empty() => Ok(Self::Configured(String::from(text))),
            _ => Err(format!(
                "`{text}` names no back-end; write a configured name or scripted:FILE.yaml"
            )),
        }
    }
}

/// The fleet of a command: each back-end takes over from the one before it.
pub(crate) fn fleet(names: &[BackendName], config: Option<&Path>) -> Result<Fleet> {
    Ok(Fleet::in_order(upstreams(names, config)?))
}

/// The back-ends in the order in which they are tried: as named, or all that are configured, by priority.
fn upstreams(names: &[BackendName], config: Option<&Path>) -> Result<Vec<Arc<dyn Upstream>>> {
    let scripts_only = names.iter().all(|name| matches!(name, BackendName::Scripted(_)));
    if !names.is_empty() && scripts_only && config.is_none() {
        let scripted = names.iter().filter_map(|name| match name {
            BackendName::Scripted(path) => Some(scripted(&stem(path), path)),
            BackendName::Configured(_) => None,
        });
        return scripted.collect();
    }
    let settings = Settings::of(&Sources::from_environment(config)?.merge()?)?;
    let shelf = Shelf::new(settings)?;
    if names.is_empty() {
        shelf.all()
    } else {
        names.iter().map(|name| shelf.named(name)).collect()
    }
}

/// The configured back-ends, and the one client that they share.
struct Shelf {
    settings: Settings,
    client: Client,
}

impl Shelf {
    fn new(settings: Settings) -> Result<Self> {
        let client = Client::new(Duration::from_millis(settings.timeouts.connect_ms))?;
        Ok(Self { settings, client })
    }

    fn named(&self, name: &BackendName) -> Result<Arc<dyn Upstream>> {
        let wanted = match name {
            BackendName::Scripted(path) => return scripted(&stem(path), path),
            BackendName::Configured(wanted) => wanted,
        };
        let backends = &self.settings.backends;
        let found = backends.iter().find(|backend| backend.name == *wanted);
        let backend = found.ok_or_else(|| {
            let known: Vec<_> = backends.iter().map(|backend| backend.name.as_str()).collect();
            let hint = match nearest(wanted, known.iter().copied(), 1).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => String::from("none is configured; see `cogn config show`"),
                None => format!("configured: {}", known.join(", ")),
            };
            hinted(format!("no back-end is named `{wanted}` (E4001)"), hint)
        })?;
        self.upstream(backend).map_err(|reason| {
            hinted(
                format!("back-end `{wanted}` is unavailable (E4001): {reason}"),
                "`cogn config show --explain` tells where it is configured",
            )
        })
    }

    fn all(&self) -> Result<Vec<Arc<dyn Upstream>>> {
        let mut backends: Vec<&Backend> = self
            .settings
            .backends
            .iter()
            .filter(|backend| backend.weight > 0)
            .collect();
        backends.sort_by_key(|backend| std::cmp::Reverse(backend.priority));
        let mut upstreams = Vec::new();
        let mut reasons = Vec::new();
        for backend in backends {
            match self.upstream(backend) {
                Ok(upstream) => upstreams.push(upstream),
                Err(reason) => reasons.push(format!("{}: {reason}", backend.name)),
            }
        }
        if upstreams.is_empty() {
            let hint = match reasons.is_empty() {
                true => String::from(
                    "set OPENAI_API_KEY or ANTHROPIC_API_KEY, write [[backends]] into cogn.toml, or use --backend scripted:FILE.yaml",
                ),
                false => reasons.join("; "),
            };
            return Err(hinted("no back-end to ask (E4001)", hint));
        }
        Ok(upstreams)
    }

    fn upstream(&self, backend: &Backend) -> Result<Arc<dyn Upstream>, String> {
        let http = match backend.kind {
            BackendKind::Scripted => {
                let path = backend.script.as_deref().ok_or("`script` names no file")?;
                return scripted(&backend.name, path).map_err(|error| format!("{error:#}"));
            }
            BackendKind::Openai => providers::openai(
                self.client.clone(),
                self.options(backend, providers::openai::BASE_URL)?,
            ),
            BackendKind::Anthropic => providers::anthropic(
                self.client.clone(),
                self.options(backend, providers::anthropic::BASE_URL)?,
            ),
        };
        Ok(Arc::new(http))
    }

    fn options(&self, backend: &Backend, base_url: &str) -> Result<HttpOptions, String> {
        let credential = backend.credential.as_ref().map(|name| {
            let known = self
                .settings
                .credentials
                .iter()
                .find(|credential| credential.name == *name);
            known
                .ok_or_else(|| format!("no credential is named `{name}`"))
                .and_then(config::resolve)
        });
        let features = match (&backend.features, backend.kind) {
            (Some(features), _) => features.clone(),
            (None, BackendKind::Openai) => vec![Feature::JsonSchema],
            (None, BackendKind::Anthropic | BackendKind::Scripted) => Vec::new(),
        };
        Ok(HttpOptions {
            name: backend.name.clone(),
            base_url: backend.base_url.clone().unwrap_or_else(|| String::from(base_url)),
            model: backend.model.clone(),
            key: credential.transpose()?,
            features,
            timeouts: timeouts(self.settings.timeouts),
        })
    }
}

fn timeouts(settings: Timeouts) -> providers::Timeouts {
    providers::Timeouts {
        first_byte: Duration::from_millis(settings.first_byte_ms),
        idle: Duration::from_millis(settings.idle_ms),
        total: Duration::from_millis(settings.total_ms),
    }
}

fn scripted(name: &str, path: &Path) -> Result<Arc<dyn Upstream>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let script = Script::parse(&text).with_context(|| format!("cannot use {}", path.display()))?;
    Ok(Arc::new(Scripted::new(name, script)))
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
