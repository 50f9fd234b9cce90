//! The sources of layers: the built-in defaults, the files of the system, the user and the project, `COGN_*`
//! variables. Later layers take precedence.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::Result;
use serde_json::Value;

use super::layer::{Layer, Origin};
use super::merged::Merged;
use super::project::{self, TrustState, TrustStore};
use super::renamed::accept_old_names;
use super::vendor_env;
use crate::output::{hinted, warn_once};

const FILE_BYTES_MAX: u64 = 1024 * 1024;
pub(super) const FILE_NAME: &str = "cogn.toml";
const PREFIX: &str = "COGN_";

/// Variables with the prefix that are not settings.
const NOT_SETTINGS: [&str; 3] = ["COGN_MODELS_DIR", "COGN_GENERATE", "COGN_LOG"];

const DEFAULTS: &str = include_str!("defaults.toml");

/// The files and variables that were found, before merging.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The files of the system and the user, and `--config FILE`: these are trusted.
    pub(crate) files: Vec<PathBuf>,
    /// The file of the project.
    pub(crate) project: Option<PathBuf>,
    pub(crate) trust: TrustStore,
    pub(crate) variables: Vec<(String, String)>,
    /// Variables of vendors' tools, with their values.
    pub(crate) vendors: Vec<(&'static str, String)>,
}

impl Sources {
    /// `explicit` is `--config FILE`: it replaces the file of the project and must exist.
    pub(crate) fn from_environment(explicit: Option<&Path>) -> Result<Self> {
        let mut files = user_files();
        let mut project = None;
        match explicit {
            Some(path) if !path.is_file() => {
                let hint = "`--config` requires an existing file; omit it to use the defaults";
                return Err(hinted(
                    format!("no configuration file at {}", path.display()),
                    hint,
                ));
            }
            Some(path) => files.push(path.to_path_buf()),
            None => project = project::project_file(),
        }
        let variables = env::vars_os().filter_map(|(name, value)| text_pair(name, value));
        Ok(Self {
            files,
            project,
            trust: TrustStore::from_environment(),
            variables: variables.filter(|(name, _)| is_setting(name)).collect(),
            vendors: vendor_env::found(),
        })
    }

    /// The files that are read, in order of increasing priority.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().chain(&self.project).map(PathBuf::as_path)
    }

    /// The files whose change can change the configuration.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        let record = self
            .project
            .as_deref()
            .and_then(|path| self.trust.record_path(path));
        self.all_files().map(PathBuf::from).chain(record).collect()
    }

    pub(crate) fn merge(self) -> Result<Merged> {
        let mut files = Vec::new();
        for path in &self.files {
            if let Some(text) = read(path)? {
                files.push(parse(path, &text)?);
            }
        }
        let mut project = self.project_layer()?;
        let mut variables = Layer::default();
        for (name, value) in &self.variables {
            set_variable(&mut variables, name, value);
        }
        let project_layer = project.iter_mut().map(|(layer, _)| layer);
        for layer in files.iter_mut().chain(project_layer).chain([&mut variables]) {
            for warning in accept_old_names(layer) {
                warn_once(&warning);
            }
        }
        let trusted = project.iter().filter(|(_, state)| *state == TrustState::Trusted);
        let configuring = files
            .iter()
            .chain(trusted.map(|(layer, _)| layer))
            .chain([&variables]);
        let mut below = vec![defaults()?];
        if !configuring
            .into_iter()
            .any(|layer| layer.tree.contains_key("backends"))
        {
            below.push(vendor_env::layer(&self.vendors));
        }
        below.append(&mut files);
        let outdated = self.restrict_project(&mut project, &below);
        let layers = below
            .into_iter()
            .chain(project.map(|(layer, _)| layer))
            .chain([variables]);
        let mut merged = Merged::of(layers);
        merged.outdated_trust = outdated;
        Ok(merged)
    }

    fn project_layer(&self) -> Result<Option<(Layer, TrustState)>> {
        let Some(path) = &self.project else {
            return Ok(None);
        };
        project::refuse_other_owners(path)?;
        let Some(text) = read(path)? else {
            return Ok(None);
        };
        Ok(Some((parse(path, &text)?, self.trust.state(path, &text))))
    }

    /// Removes the restricted settings of a project that is not trusted, with a warning. Returns the warning if
    /// the file has changed since it was trusted.
    fn restrict_project(&self, project: &mut Option<(Layer, TrustState)>, below: &[Layer]) -> Option<String> {
        let (layer, state) = project.as_mut()?;
        if *state == TrustState::Trusted {
            return None;
        }
        let ignored = project::restrict(layer, &backend_names(below));
        if ignored.is_empty() {
            return None;
        }
        let warning = project::warning(self.project.as_deref()?, *state, &ignored);
        warn_once(&warning);
        (*state == TrustState::Changed).then_some(warning)
    }
}

fn backend_names(layers: &[Layer]) -> Vec<String> {
    let lists = layers
        .iter()
        .filter_map(|layer| layer.tree.get("backends")?.as_array());
    let names = lists.flatten().filter_map(|item| item["name"].as_str());
    names.map(String::from).collect()
}

fn defaults() -> Result<Layer> {
    let parsed = Layer::of_toml(Path::new("defaults.toml"), DEFAULTS);
    let mut layer =
        parsed.map_err(|(message, _)| anyhow::anyhow!("the built-in defaults are invalid: {message}"))?;
    for origin in layer.origins.values_mut() {
        *origin = Origin::Default;
    }
    Ok(layer)
}

/// The text of a configuration file, if there is one.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(anyhow::Error::new(error).context(format!("cannot read {}", path.display()))),
        Ok(bytes) if bytes as u64 > FILE_BYTES_MAX => {
            anyhow::bail!("{} is larger than 1 MiB", path.display())
        }
        Ok(_) => Ok(Some(text)),
    }
}

pub(crate) fn parse(path: &Path, text: &str) -> Result<Layer> {
    Layer::of_toml(path, text).map_err(|(message, at)| {
        let place = format!("{}:{}:{}", path.display(), at.line, at.column);
        hinted(
            format!("{place}: {}", message.trim()),
            format!("the line reads: {}", at.snippet.trim()),
        )
    })
}

/// `COGN_SERVER__LISTEN` sets `server.listen`. Values are parsed as TOML if possible (numbers, booleans,
/// lists), otherwise used as text.
fn set_variable(layer: &mut Layer, name: &str, value: &str) {
    let path = name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
    let path: Vec<&str> = path.split("__").collect();
    let parsed = Layer::of_toml(Path::new(name), &format!("value = {value}")).ok();
    let parsed = parsed.and_then(|mut layer| layer.tree.remove("value"));
    let value = parsed.unwrap_or_else(|| Value::String(String::from(value)));
    layer.set(&path, value, Origin::Environment(String::from(name)));
}

fn is_setting(name: &str) -> bool {
    name.starts_with(PREFIX) && !NOT_SETTINGS.contains(&name)
}

fn text_pair(name: OsString, value: OsString) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

fn user_folder() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()) {
        return Some(PathBuf::from(folder).join("cogn"));
    }
    env::home_dir().map(|home| home.join(".config/cogn"))
}

/// The files of the system and of the user.
pub(super) fn user_files() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/cogn").join(FILE_NAME)];
    files.extend(user_folder().map(|folder| folder.join(FILE_NAME)));
    files
}

pub(super) fn is_same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
