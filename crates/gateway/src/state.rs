//! What every handler can reach.

use std::sync::Arc;

use engine::{Engine, Tenant};

#[derive(Clone, Debug)]
pub struct Gateway {
    pub(crate) engine: Arc<Engine>,
    /// Whose requests these are. There is one tenant until keys name others.
    pub(crate) tenant: Tenant,
}

impl Gateway {
    pub fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            tenant: Tenant::local(),
        }
    }
}
