//! Creates a back-end for an embedded model from installed weights. Errors contain a reason and a hint.

use std::path::PathBuf;
use std::sync::Arc;

use engine::port::Upstream;
use local::{Embedder, EmbedderOptions, EncoderFiles, LocalUpstream, Options};

use super::catalogue::{ModelKind, default_entry};
use super::store::ModelStore;

/// Why the embedded model is unavailable, and how to fix it.
#[derive(Debug)]
pub(crate) struct ModelUnavailable {
    pub(crate) reason: String,
    pub(crate) hint: String,
}

/// The embedded model as a back-end. `model` is an installed model or a GGUF file; without it, the default
/// model is used.
pub(crate) fn embedded(name: &str, model: Option<&str>) -> Result<Arc<dyn Upstream>, ModelUnavailable> {
    if !local::BUILT_IN {
        return Err(not_built("the embedded model"));
    }
    let (model, path) = weights(model, ModelKind::Generator)?;
    Ok(Arc::new(LocalUpstream::new(&Options::new(name, model, path))))
}

/// The embedded encoder as a back-end. `model` is an installed model; without it, the default is used.
pub(crate) fn encoder(name: &str, model: Option<&str>) -> Result<Arc<dyn Upstream>, ModelUnavailable> {
    if !local::EMBEDS {
        return Err(not_built("embeddings"));
    }
    let (model, path) = weights(model, ModelKind::Encoder)?;
    let options = EmbedderOptions::new(name, model, EncoderFiles::beside(&path));
    Ok(Arc::new(Embedder::new(options)))
}

fn not_built(what: &str) -> ModelUnavailable {
    ModelUnavailable {
        reason: format!("cogn was built without {what} (E4001)"),
        hint: String::from(
            "install a build that includes it: cargo install --path crates/cogn --features local; or set a vendor's key, such \
             as OPENAI_API_KEY",
        ),
    }
}

fn weights(model: Option<&str>, form: ModelKind) -> Result<(String, PathBuf), ModelUnavailable> {
    let pull = |model: &str| ModelUnavailable {
        reason: format!("the weights of `{model}` are not installed (E4001)"),
        hint: format!("`cogn models pull {model}` downloads them"),
    };
    let other = |reason: String| ModelUnavailable {
        reason,
        hint: String::from("`cogn models list` shows the installed models"),
    };
    let file = model.filter(|model| form == ModelKind::Generator && model.ends_with(".gguf"));
    if let Some(path) = file.map(PathBuf::from) {
        local::check_weights(&path).map_err(|error| other(error.to_string()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok((stem.to_ascii_lowercase(), path));
    }
    let store = ModelStore::from_environment().map_err(|error| other(format!("{error:#}")))?;
    let found = match model {
        Some(model) => store.find(model),
        None => store
            .default_model(form)
            .map_err(|error| other(format!("{error:#}")))?,
    };
    match (found, model) {
        (Some(installed), _) if installed.form == form => Ok((installed.name, installed.path)),
        (Some(installed), _) => Err(other(match installed.form {
            ModelKind::Encoder => format!("`{}` supports only embeddings (E4001)", installed.name),
            ModelKind::Generator => format!("`{}` does not support embeddings (E4001)", installed.name),
        })),
        (None, Some(model)) => Err(pull(model)),
        (None, None) if form == ModelKind::Encoder => Err(pull(
            default_entry(form).map_or("all-minilm-l6-v2", |entry| entry.name),
        )),
        (None, None) => Err(ModelUnavailable {
            reason: String::from("no weights for the embedded model are installed (E4001)"),
            hint: String::from(
                "`cogn models pull` downloads a small model; or set a vendor's key, such as OPENAI_API_KEY",
            ),
        }),
    }
}
