//! `[routing]`: who is asked, and in which order.

use engine::route::{Host, Policy};
use ir::envelope::PolicySpec;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Routing {
    /// A name, or a table of name and arguments.
    pub(crate) policy: Option<PolicySpec>,
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) deny: Option<Vec<String>>,
}

impl Routing {
    /// What the person who runs this allows.
    pub(crate) fn host(&self) -> Result<Host, engine::route::PolicyError> {
        Ok(Host {
            policy: self.policy.as_ref().map(Policy::try_from).transpose()?,
            allowlist: self.allow.clone(),
            denylist: self.deny.clone(),
        })
    }
}
