//! Presets of known programs: how each is called, its features, and how to install it. A preset is data;
//! `[backends.command]` overrides single keys.

use std::path::Path;
use std::sync::LazyLock;

use ir::operation::{Feature, Operation};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::layer::Layer;

const FILES: [(&str, &str); 4] = [
    ("espeak-ng", include_str!("presets/espeak-ng.toml")),
    ("faster-whisper", include_str!("presets/faster-whisper.toml")),
    ("piper", include_str!("presets/piper.toml")),
    ("pocketsphinx", include_str!("presets/pocketsphinx.toml")),
];

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Preset {
    #[serde(skip)]
    pub(crate) name: &'static str,
    pub(crate) operation: Operation,
    pub(crate) features: Vec<Feature>,
    /// How to install the program or a missing dependency.
    pub(crate) install: String,
    /// Arguments for a check that succeeds if the program and its dependencies are installed.
    pub(crate) check: Vec<String>,
    /// The keys of `[backends.command]`.
    pub(crate) command: Map<String, Value>,
}

impl Preset {
    pub(crate) fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Preset>> = LazyLock::new(|| {
            // A test parses all files, so no error is dropped here.
            let read = FILES
                .iter()
                .filter_map(|(name, text)| Preset::read(name, text).ok());
            read.collect()
        });
        &ALL
    }

    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|preset| preset.name == name)
    }

    fn read(name: &'static str, text: &str) -> anyhow::Result<Self> {
        let layer = Layer::of_toml(Path::new(name), text)
            .map_err(|(message, location)| anyhow::anyhow!("{name}:{}: {message}", location.line))?;
        let mut preset: Self = serde_json::from_value(Value::Object(layer.tree))?;
        preset.name = name;
        Ok(preset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::Program;

    #[test]
    fn all_presets_are_valid() {
        assert_eq!(Preset::all().len(), FILES.len());
        for (name, text) in FILES {
            let preset = Preset::read(name, text).expect("a valid preset");
            assert!(!preset.install.is_empty());
            let program = Program::over(Some(&preset.command), None).expect("a valid command");
            let options = program.options(name, preset.operation).expect("a valid template");
            assert_eq!(options.problem(), None, "{name}");
        }
    }
}
