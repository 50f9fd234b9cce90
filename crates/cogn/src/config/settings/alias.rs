//! `[aliases]`: names that vendors' clients may ask for, each for a model, a module or one back-end's model.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Alias {
    /// A model's name, or `module:NAME`.
    Model(String),
    #[serde(rename_all = "snake_case")]
    Of {
        model: String,
        /// The only back-end that may answer.
        backend: Option<String>,
    },
}

impl Alias {
    pub(crate) fn gateway(&self) -> gateway::Alias {
        let (model, backend) = match self {
            Self::Model(model) => (model.clone(), None),
            Self::Of { model, backend } => (model.clone(), backend.clone()),
        };
        gateway::Alias { model, backend }
    }
}
