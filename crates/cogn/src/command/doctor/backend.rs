//! Checks of the secrets and of the back-ends: whether they can be called, and whether their servers answer.

use std::time::Duration;

use futures::StreamExt;
use module::diagnostic::nearest;

use super::filesystem;
use super::finding::Finding;
use crate::backends::{ConfiguredBackend, Instance, Unavailable};
use crate::command::backends::connectivity::Connectivity;
use crate::config::{self, Settings};

/// Limit of back-ends contacted concurrently.
const AT_ONCE_MAX: usize = 16;

/// A back-end after the check.
pub(super) struct CheckedBackend {
    listed: ConfiguredBackend,
    /// One for each key, if it was contacted over HTTP.
    reached: Vec<(String, Connectivity)>,
}

impl CheckedBackend {
    /// A request can be sent to it.
    fn is_usable(&self) -> bool {
        let answers = self.reached.iter().any(|(_, reached)| reached.error.is_none());
        self.listed.is_usable() && (self.reached.is_empty() || answers)
    }
}

pub(super) fn secrets(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for credential in &settings.credentials {
        let name = format!("secret {}", credential.name);
        let used = settings
            .backends
            .iter()
            .any(|backend| backend.keys().contains(&credential.name.as_str()));
        findings.push(match config::resolve(credential) {
            Ok(_) => Finding::ok(name, "found"),
            Err(reason) if used => Finding::warn(name, reason, "set it, or remove the back-end that uses it"),
            Err(reason) => Finding::ok(name, format!("{reason}; no back-end uses it")),
        });
        findings.extend(credential.file.as_deref().and_then(filesystem::too_open));
    }
    findings
}

/// Tries each back-end; without `patience`, servers are not contacted.
pub(super) async fn check_all(
    listed: Vec<ConfiguredBackend>,
    patience: Option<Duration>,
) -> Vec<CheckedBackend> {
    let checks = listed.into_iter().map(|listed| async move {
        let listed = listed.tried().await;
        let mut reached = Vec::new();
        // A back-end that is out of service gets no requests.
        if let (Ok(instances), Some(patience), true) = (&listed.instances, patience, listed.is_usable()) {
            let servers = instances.iter().filter_map(|instance| match instance {
                Instance::Http(http) => Some(http),
                Instance::Program(_) | Instance::Other(_) => None,
            });
            let contacts = servers.map(|http| async move {
                let address = String::from(http.address());
                (address, Connectivity::of(http, patience).await)
            });
            reached = futures::future::join_all(contacts).await;
        }
        CheckedBackend { listed, reached }
    });
    futures::stream::iter(checks)
        .buffered(AT_ONCE_MAX)
        .collect()
        .await
}

pub(super) fn findings(checked: &[CheckedBackend]) -> Vec<Finding> {
    let usable = checked.iter().filter(|one| one.is_usable()).count();
    let mut findings: Vec<_> = checked.iter().flat_map(|one| about(one, usable == 0)).collect();
    if usable == 0 {
        let hint = "set a vendor's key such as OPENAI_API_KEY, add [[backends]] to cogn.toml, or start the server \
                    of a back-end";
        findings.push(Finding::bad("back-ends", "none is usable", hint));
    }
    findings
}

/// A problem is severe if no other back-end is usable.
fn about(checked: &CheckedBackend, severe: bool) -> Vec<Finding> {
    let candidate = &checked.listed.candidate;
    let name = format!("back-end {}", candidate.name);
    let problem = |message: String, hint: &str| match severe {
        true => Finding::bad(name.clone(), message, hint),
        false => Finding::warn(name.clone(), message, hint),
    };
    match &checked.listed.instances {
        Err(Unavailable { reason, hint }) => {
            let usual = "`cogn config show --explain` shows where it comes from";
            return vec![problem(reason.clone(), hint.as_deref().unwrap_or(usual))];
        }
        Ok(_) if candidate.weight == 0 => return vec![Finding::ok(name, "out of service (weight 0)")],
        Ok(_) if checked.reached.is_empty() => {
            return vec![Finding::ok(name, format!("usable ({})", candidate.kind))];
        }
        Ok(_) => {}
    }
    let each = checked.reached.iter().map(|(address, reached)| {
        let text = reached.describe();
        match (&reached.error, missing_model(candidate.model.as_deref(), reached)) {
            (Some(_), _) => problem(
                text,
                "start its server, or correct `base_url` and the key in the configuration",
            ),
            (None, Some(missing)) => Finding::warn(
                name.clone(),
                format!("{address}: {text}; {missing}"),
                "correct `model` in the configuration, or install the model on the server",
            ),
            (None, None) => Finding::ok(name.clone(), format!("{address}: {text} ({})", candidate.kind)),
        }
    });
    each.collect()
}

/// That the server does not list the configured model.
fn missing_model(model: Option<&str>, reached: &Connectivity) -> Option<String> {
    let (model, listed) = (model?, reached.models.as_ref()?);
    // A server may add a tag to a name: `llama3` is `llama3:latest`.
    let is_listed = |one: &String| one == model || one.split(':').next() == Some(model);
    if listed.is_empty() || listed.iter().any(is_listed) {
        return None;
    }
    let near = nearest(model, listed.iter().map(String::as_str));
    let near = near.map(|near| format!("; did you mean `{near}`?"));
    Some(format!(
        "it does not list the model `{model}`{}",
        near.unwrap_or_default()
    ))
}
