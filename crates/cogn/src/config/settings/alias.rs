//! `[aliases]`: model names for vendors' clients, each for a model, a module or a model of one back-end.

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Alias {
    /// The name of a model, or `module:NAME`.
    Model(String),
    #[serde(rename_all = "snake_case")]
    Of {
        model: String,
        /// The only back-end that may be used.
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
