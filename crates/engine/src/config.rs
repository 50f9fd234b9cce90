//! The configuration of an engine that a reload replaces, as one value: what reads one snapshot of it never
//! sees parts of two versions.

use std::sync::Arc;

use crate::fleet::Fleet;
use crate::media::MediaPipeline;
use crate::modules::Modules;
use crate::settings::Settings;

#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub settings: Arc<Settings>,
    pub modules: Arc<Modules>,
    /// The back-ends.
    pub fleet: Arc<Fleet>,
    /// By default nothing is fetched and no file is read.
    pub media: MediaPipeline,
}
