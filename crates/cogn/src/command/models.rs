//! `cogn models`: the installed weights of embedded models.

use anyhow::Result;
use clap::{Args, Subcommand};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::models::{
    CATALOGUE, CatalogueModel, InstalledModel, ModelKind, ModelStore, PullOptions, PullSource, WeightsSource,
    default_entry, pull,
};
use crate::output::{Output, hinted};

#[derive(Debug, Args)]
pub(crate) struct Models {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List known and installed models.
    List,
    /// Download weights and verify their digest; an interrupted download is resumed.
    Pull(Pull),
    /// Remove installed weights.
    Rm {
        /// The name of the model.
        name: String,
    },
}

#[derive(Debug, Args)]
struct Pull {
    /// A known name, a local GGUF file, an https:// URL of one, or a folder with an encoder for embeddings.
    /// Default: the smallest known model.
    model: Option<String>,
    /// The name to install it under.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The required SHA-256 digest of the file.
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,
    /// Do not requantise Q4_1 weights to Q4_0, which the runtime reads and generates faster.
    #[arg(long)]
    as_is: bool,
}

impl Models {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let store = ModelStore::from_environment()?;
        match &self.action {
            Action::List => list(&store, output),
            Action::Pull(pull) => pull.run(&store, output),
            Action::Rm { name } => {
                let removed = store.remove(name)?;
                match output.json {
                    true => output.json(&json!({"removed": removed.name, "path": removed.path}))?,
                    false => output.line(format!("removed {}", removed.path.display()))?,
                }
                Ok(Exit::Success)
            }
        }
    }
}

impl Pull {
    fn run(&self, store: &ModelStore, output: &Output) -> Result<Exit> {
        let wanted = match (&self.model, default_entry(ModelKind::Generator)) {
            (Some(model), _) => PullSource::read(model),
            (None, Some(entry)) => PullSource::Name(String::from(entry.name)),
            (None, None) => return Err(hinted("there is no default model", "give a file or a URL")),
        };
        let options = PullOptions {
            name: self.name.as_deref(),
            digest: self.sha256.as_deref(),
            as_is: self.as_is,
        };
        let pulled = pull(store, &wanted, options, output)?;
        let installed = &pulled.installed;
        if output.json {
            let mut shown = installed_json(installed);
            if let Value::Object(shown) = &mut shown {
                shown.insert(String::from("already"), Value::Bool(pulled.already));
            }
            output.json(&shown)?;
        } else {
            let word = if pulled.already {
                "already installed"
            } else {
                "pulled"
            };
            output.line(format!(
                "{word}: {} ({}) at {}",
                installed.name.bold(),
                size(installed.bytes),
                installed.path.display()
            ))?;
            if installed.is_requantised() && !pulled.already {
                output.note("requantised from Q4_1 to Q4_0, which this runtime computes faster");
            }
        }
        Ok(Exit::Success)
    }
}

fn list(store: &ModelStore, output: &Output) -> Result<Exit> {
    let here = store.all()?;
    let others = here
        .iter()
        .filter(|installed| CATALOGUE.iter().all(|entry| entry.name != installed.name));
    if output.json {
        let known = CATALOGUE.iter().map(|entry| entry_json(entry, store));
        let rows: Vec<Value> = known.chain(others.map(installed_json)).collect();
        output.json(&rows)?;
        return Ok(Exit::Success);
    }
    for entry in CATALOGUE {
        let installed = store.find(entry.name);
        let state = match &installed {
            Some(installed) => format!("installed at {}", installed.path.display()),
            None => String::from("not installed"),
        };
        output.line(format!(
            "{}  {}  {}\n  {}, {}\n  for {}\n  sha256 {}",
            entry.name.bold(),
            size(entry.bytes),
            state,
            entry.title,
            entry.licence,
            entry.use_for,
            entry.sha256.dimmed()
        ))?;
        for source in entry.sources {
            output.line(format!("  {}", format!("from {}", source.describe()).dimmed()))?;
        }
    }
    for installed in others {
        let (digest, source) = match &installed.note {
            Some(note) => (note.sha256.as_str(), note.source.as_str()),
            None => ("unknown", "installed manually"),
        };
        output.line(format!(
            "{}  {}  installed at {}\n  sha256 {}\n  from {}",
            installed.name.bold(),
            size(installed.bytes),
            installed.path.display(),
            digest.dimmed(),
            source.dimmed()
        ))?;
    }
    Ok(Exit::Success)
}

fn entry_json(entry: &CatalogueModel, store: &ModelStore) -> Value {
    let installed = store.find(entry.name);
    json!({
        "name": entry.name,
        "title": entry.title,
        "use_for": entry.use_for,
        "bytes": entry.bytes,
        "sha256": entry.sha256,
        "requantised_sha256": entry.requantised_sha256,
        "licence": entry.licence,
        "sources": entry.sources.iter().map(|source| WeightsSource::describe(*source)).collect::<Vec<_>>(),
        "installed": installed.is_some(),
        "path": installed.map(|installed| installed.path),
    })
}

fn installed_json(installed: &InstalledModel) -> Value {
    let note = installed.note.as_ref();
    json!({
        "name": installed.name,
        "title": null,
        "use_for": null,
        "bytes": installed.bytes,
        "sha256": note.map(|note| &note.sha256),
        "installed_sha256": note.and_then(|note| note.installed_sha256.as_ref()),
        "licence": null,
        "sources": note.map(|note| &note.source).into_iter().collect::<Vec<_>>(),
        "installed": true,
        "path": installed.path,
    })
}

fn size(bytes: u64) -> String {
    let mebibytes = bytes.div_ceil(1024 * 1024);
    match mebibytes {
        0..2048 => format!("{mebibytes} MiB"),
        _ => format!("{}.{} GiB", mebibytes / 1024, mebibytes % 1024 * 10 / 1024),
    }
}
