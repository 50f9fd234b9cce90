//! Resolves a requirement of a composition to a module: the named module in a matching version, or its
//! fallback.

use std::fmt;
use std::sync::Arc;

use semver::Version;

use super::call::calls;
use crate::code::Code;
use crate::envelope::ErrorBody;
use crate::manifest::Requirement;
use crate::module::Module;

/// Finds a module by name.
pub type FindModule<'a> = dyn Fn(&str) -> Option<Arc<Module>> + 'a;

/// A module that another module requires or calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// As declared in `composition.requires`, or with defaults if only the prompt names it.
    pub requirement: Requirement,
    /// Whether the prompt calls it.
    pub called: bool,
}

/// The resolved module, and why the fallback was used, if it was.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub module: Arc<Module>,
    pub fallback_reason: Option<ResolveError>,
}

/// Why a requirement cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError {
    pub name: String,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    NotFound,
    Version { found: String, wanted: String },
}

/// All dependencies of a module, each name once: required modules first, then called ones.
pub fn dependencies(module: &Module) -> Vec<Dependency> {
    let mut links: Vec<Dependency> = Vec::new();
    for requirement in &module.manifest.composition.requires {
        if links.iter().all(|link| link.requirement.name != requirement.name) {
            links.push(Dependency {
                requirement: requirement.clone(),
                called: false,
            });
        }
    }
    for call in calls(&module.prompt).flatten() {
        match links.iter_mut().find(|link| link.requirement.name == call.name) {
            Some(link) => link.called = true,
            None => links.push(Dependency {
                requirement: Requirement {
                    name: String::from(call.name),
                    optional: call.options.optional,
                    ..Requirement::default()
                },
                called: true,
            }),
        }
    }
    links
}

/// Resolves a requirement to a module.
pub fn resolve(requirement: &Requirement, find: &FindModule<'_>) -> Result<Resolved, ResolveError> {
    let absence = match named(requirement, find) {
        Ok(module) => {
            return Ok(Resolved {
                module,
                fallback_reason: None,
            });
        }
        Err(absence) => absence,
    };
    match requirement.fallback.as_deref().and_then(find) {
        Some(module) => Ok(Resolved {
            module,
            fallback_reason: Some(absence),
        }),
        None => Err(absence),
    }
}

fn named(requirement: &Requirement, find: &FindModule<'_>) -> Result<Arc<Module>, ResolveError> {
    let absence = |reason| ResolveError {
        name: requirement.name.clone(),
        reason,
    };
    let module = find(&requirement.name).ok_or_else(|| absence(Reason::NotFound))?;
    // A version that is not semantic matches only `*`; the module checks report it.
    let fits = match (requirement.range(), Version::parse(&module.manifest.version)) {
        (Ok(range), Ok(version)) => range.matches(&version),
        _ => requirement.version.as_deref().is_none_or(|range| range == "*"),
    };
    if fits {
        return Ok(module);
    }
    Err(absence(Reason::Version {
        found: module.manifest.version.clone(),
        wanted: requirement.version.clone().unwrap_or_default(),
    }))
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.reason {
            Reason::NotFound => write!(f, "module `{name}` cannot be found"),
            Reason::Version { found, wanted } => {
                write!(f, "module `{name}` has version {found}, but {wanted} is required")
            }
        }
    }
}

impl ResolveError {
    pub(super) fn into_error(self, required_by: &str) -> ErrorBody {
        let error = ErrorBody::new(Code::E4006, self.to_string())
            .detail("module", self.name)
            .detail("required_by", required_by);
        match self.reason {
            Reason::NotFound => error,
            Reason::Version { found, wanted } => error.detail("found", found).detail("required", wanted),
        }
    }
}
