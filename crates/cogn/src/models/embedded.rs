//! The last step to an embedded model: from a name to weights on the shelf to a back-end. What is missing is
//! said as a reason with the way out in it.

use std::path::PathBuf;
use std::sync::Arc;

use engine::port::Upstream;
use local::{Embedder, EmbedderOptions, EncoderFiles, LocalUpstream, Options};

use super::catalogue::{ModelKind, default_entry};
use super::store::ModelStore;

/// Why there is no embedded model, and what to do about it.
#[derive(Debug)]
pub(crate) struct ModelUnavailable {
    pub(crate) reason: String,
    pub(crate) hint: String,
}

/// The embedded model as a back-end. `model` is a name on the shelf or a GGUF file; without one, the usual
/// model is taken.
pub(crate) fn embedded(name: &str, model: Option<&str>) -> Result<Arc<dyn Upstream>, ModelUnavailable> {
    if !local::BUILT_IN {
        return Err(not_built("the embedded model"));
    }
    let (model, path) = weights(model, ModelKind::Generator)?;
    Ok(Arc::new(LocalUpstream::new(&Options::new(name, model, path))))
}

/// The embedded encoder as a back-end. `model` is a name on the shelf; without one, the usual one is taken.
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
        reason: format!("this cogn was built without {what} (E4001)"),
        hint: String::from(
            "install one that has it: cargo install --path crates/cogn --features local; or set a vendor's key, such \
             as OPENAI_API_KEY",
        ),
    }
}

fn weights(model: Option<&str>, form: ModelKind) -> Result<(String, PathBuf), ModelUnavailable> {
    let pull = |model: &str| ModelUnavailable {
        reason: format!("the weights of `{model}` are not here (E4001)"),
        hint: format!("`cogn models pull {model}` fetches them"),
    };
    let other = |reason: String| ModelUnavailable {
        reason,
        hint: String::from("`cogn models list` shows what is here"),
    };
    let file = model.filter(|model| form == ModelKind::Generator && model.ends_with(".gguf"));
    if let Some(path) = file.map(PathBuf::from) {
        local::check_weights(&path).map_err(|error| other(error.to_string()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok((stem.to_ascii_lowercase(), path));
    }
    let shelf = ModelStore::from_environment().map_err(|error| other(format!("{error:#}")))?;
    let found = match model {
        Some(model) => shelf.find(model),
        None => shelf.default_model(form).map_err(|error| other(format!("{error:#}")))?,
    };
    match (found, model) {
        (Some(installed), _) if installed.form == form => Ok((installed.name, installed.path)),
        (Some(installed), _) => Err(other(match installed.form {
            ModelKind::Encoder => format!("`{}` makes embeddings and nothing else (E4001)", installed.name),
            ModelKind::Generator => format!("`{}` writes, and makes no embeddings (E4001)", installed.name),
        })),
        (None, Some(model)) => Err(pull(model)),
        (None, None) if form == ModelKind::Encoder => Err(pull(
            default_entry(form).map_or("all-minilm-l6-v2", |entry| entry.name),
        )),
        (None, None) => Err(ModelUnavailable {
            reason: String::from("no weights for the embedded model are here (E4001)"),
            hint: String::from(
                "`cogn models pull` fetches a small model; or set a vendor's key, such as OPENAI_API_KEY",
            ),
        }),
    }
}
