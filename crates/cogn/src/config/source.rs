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
use super::renamed::accept_old_names;
use super::vendor_env;
use crate::output::{hinted, warn_once};

const FILE_BYTES_MAX: u64 = 1024 * 1024;
const FILE_NAME: &str = "cogn.toml";
const PREFIX: &str = "COGN_";

/// Variables with the prefix that are not settings.
const NOT_SETTINGS: [&str; 3] = ["COGN_MODELS_DIR", "COGN_GENERATE", "COGN_LOG"];

const DEFAULTS: &str = include_str!("defaults.toml");

/// The files and variables that were found, before merging.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) variables: Vec<(String, String)>,
    /// Variables of vendors' tools, with their values.
    pub(crate) vendors: Vec<(&'static str, String)>,
}

impl Sources {
    /// `explicit` is `--config FILE`: it replaces the file of the project and must exist.
    pub(crate) fn from_environment(explicit: Option<&Path>) -> Result<Self> {
        let mut files = vec![PathBuf::from("/etc/cogn").join(FILE_NAME)];
        files.extend(user_folder().map(|folder| folder.join(FILE_NAME)));
        match explicit {
            Some(path) if !path.is_file() => {
                let hint = "`--config` requires an existing file; omit it to use the defaults";
                return Err(hinted(
                    format!("no configuration file at {}", path.display()),
                    hint,
                ));
            }
            Some(path) => files.push(path.to_path_buf()),
            None => files.extend(project_file()),
        }
        let variables = env::vars_os().filter_map(|(name, value)| text_pair(name, value));
        Ok(Self {
            files,
            variables: variables.filter(|(name, _)| is_setting(name)).collect(),
            vendors: vendor_env::found(),
        })
    }

    pub(crate) fn merge(self) -> Result<Merged> {
        let mut layers = vec![defaults()?];
        for path in &self.files {
            layers.extend(file_layer(path)?);
        }
        let mut variables = Layer::default();
        for (name, value) in &self.variables {
            set_variable(&mut variables, name, value);
        }
        layers.push(variables);
        for layer in &mut layers {
            for warning in accept_old_names(layer) {
                warn_once(&warning);
            }
        }
        let configured = layers.iter().any(|layer| layer.tree.contains_key("backends"));
        if !configured {
            layers.insert(1, vendor_env::layer(&self.vendors));
        }
        Ok(Merged::of(layers))
    }
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

fn file_layer(path: &Path) -> Result<Option<Layer>> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(anyhow::Error::new(error).context(format!("cannot read {}", path.display())));
        }
        Ok(bytes) if bytes as u64 > FILE_BYTES_MAX => {
            anyhow::bail!("{} is larger than 1 MiB", path.display())
        }
        Ok(_) => {}
    }
    let layer = Layer::of_toml(path, &text).map_err(|(message, at)| {
        let place = format!("{}:{}:{}", path.display(), at.line, at.column);
        hinted(
            format!("{place}: {}", message.trim()),
            format!("the line reads: {}", at.snippet.trim()),
        )
    })?;
    Ok(Some(layer))
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

/// The nearest `cogn.toml` in the working folder or its parents.
fn project_file() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    here.ancestors()
        .map(|folder| folder.join(FILE_NAME))
        .find(|path| path.is_file())
}
