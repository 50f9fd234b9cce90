//! Back-ends by name: from the configuration, or a script given on the command line. A back-end that cannot
//! be used is listed with the reason and never called; the others are not affected.

mod catalog;
mod local;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use engine::fleet::{Fleet, Member};
use engine::port::Upstream;
use engine::route::{HostPolicy, Policy};
use providers::scripted::Script;
use providers::{Client, ScriptedUpstream};
use spill::SpillStore;

pub(crate) use catalog::{BackendCatalog, ConfiguredBackend, Instance, Unavailable};

use crate::config::{Settings, Sources};
use crate::output::hinted;

/// A back-end given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BackendName {
    Configured(String),
    Scripted(PathBuf),
}

impl BackendName {
    /// The script file, if it is a script.
    pub(crate) fn script(&self) -> Option<&Path> {
        match self {
            Self::Scripted(path) => Some(path),
            Self::Configured(_) => None,
        }
    }
}

impl FromStr for BackendName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("scripted", path)) if !path.is_empty() => Ok(Self::Scripted(PathBuf::from(path))),
            None if !text.is_empty() => Ok(Self::Configured(String::from(text))),
            _ => Err(format!(
                "`{text}` is not a back-end; use a configured name or scripted:FILE.yaml"
            )),
        }
    }
}

/// An HTTP client with the configured proxy and certificates, for requests that do not go to a back-end.
pub(crate) fn http_client(settings: &Settings) -> Result<Client> {
    let way = catalog::way(settings).map_err(|reason| anyhow::anyhow!(reason))?;
    Ok(Client::new(&way)?)
}

/// The fleet of a command: the named back-ends in order of priority, or all configured back-ends under the
/// configured policy. Media of their answers is stored in the spill.
pub(crate) fn fleet(names: &[BackendName], config: Option<&Path>, spill: &SpillStore) -> Result<Fleet> {
    let scripts_only = names.iter().all(|name| matches!(name, BackendName::Scripted(_)));
    if !names.is_empty() && scripts_only && config.is_none() {
        let scripted = names.iter().filter_map(|name| match name {
            BackendName::Scripted(path) => Some(scripted(&stem(path), path)),
            BackendName::Configured(_) => None,
        });
        return Ok(Fleet::in_order(scripted.collect::<Result<Vec<_>>>()?));
    }
    let settings = Settings::of(&Sources::from_environment(config)?.merge()?)?;
    fleet_of(&BackendCatalog::new(settings, spill.clone())?, names)
}

/// The same for settings that are already loaded.
pub(crate) fn fleet_of(catalog: &BackendCatalog, names: &[BackendName]) -> Result<Fleet> {
    let settings = catalog.fleet_settings();
    if names.is_empty() {
        let listed = catalog.all();
        let usable = listed.iter().any(ConfiguredBackend::is_usable);
        if !usable {
            return Err(no_usable_backend(&listed));
        }
        let members = listed.into_iter().flat_map(ConfiguredBackend::into_members);
        let host = catalog.settings().routing.host()?;
        return Ok(Fleet::new(members.collect(), host, settings));
    }
    let mut members = Vec::new();
    for (place, name) in (0..).zip(names) {
        for mut member in named(catalog, name)? {
            member.candidate.priority = -place;
            // A back-end that is named explicitly is used even if its weight is 0.
            member.candidate.weight = member.candidate.weight.max(1);
            members.push(member);
        }
    }
    let host = HostPolicy {
        policy: Some(Policy::Priority),
        ..HostPolicy::default()
    };
    Ok(Fleet::new(members, host, settings))
}

fn named(catalog: &BackendCatalog, name: &BackendName) -> Result<Vec<Member>> {
    let wanted = match name {
        BackendName::Scripted(path) => {
            return Ok(vec![Member::with_all_features(scripted(&stem(path), path)?)]);
        }
        BackendName::Configured(wanted) => wanted,
    };
    let listed = catalog.named(wanted)?;
    match &listed.instances {
        Err(Unavailable { reason, hint }) => Err(hinted(
            format!("back-end `{wanted}` is unavailable (E4001): {reason}"),
            hint.as_deref()
                .unwrap_or("`cogn config show --explain` shows where it is configured"),
        )),
        Ok(_) => Ok(listed.into_members()),
    }
}

/// The error of a fleet without a usable back-end.
fn no_usable_backend(listed: &[ConfiguredBackend]) -> anyhow::Error {
    let reasons = listed.iter().filter_map(|listed| match &listed.instances {
        Err(Unavailable { reason, .. }) => Some(format!("{}: {reason}", listed.candidate.name)),
        Ok(_) => None,
    });
    let reasons: Vec<_> = reasons.collect();
    let mut hints = listed.iter().filter_map(|listed| match &listed.instances {
        Err(Unavailable { hint, .. }) => hint.clone(),
        Ok(_) => None,
    });
    let hint = hints.next_back().unwrap_or_else(|| {
        String::from(
            "set OPENAI_API_KEY or another vendor's key, add [[backends]] to cogn.toml, or use \
             --backend scripted:FILE.yaml",
        )
    });
    let why = match reasons.is_empty() {
        true => String::from("none is configured"),
        false => reasons.join("; "),
    };
    hinted(format!("no usable back-end (E4001): {why}"), hint)
}

pub(crate) fn scripted(name: &str, path: &Path) -> Result<Arc<dyn Upstream>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let script = Script::parse(&text).with_context(|| format!("cannot use {}", path.display()))?;
    Ok(Arc::new(ScriptedUpstream::new(name, script)))
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
