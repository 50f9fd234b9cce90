//! Detects the version of the module format from the files and manifest keys.

use std::fmt;

use serde_json::{Map, Value};

use crate::file_map::FileMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Six separate files; deprecated.
    V0,
    /// `MODULE.md` with front matter, and `schema.json`.
    V1,
    /// `module.yaml` with neither policies nor tiers.
    V2_0,
    /// `module.yaml` with policies or a failure contract, answering `{ok, data}`.
    V2_1,
    /// Tiers, overflow, extensible enums; `meta` apart from `data`.
    V2_2,
    /// Streaming and media.
    V2_5,
}

impl Format {
    pub const ALL: [Self; 6] = [Self::V0, Self::V1, Self::V2_0, Self::V2_1, Self::V2_2, Self::V2_5];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0 => "v0",
            Self::V1 => "v1",
            Self::V2_0 => "v2.0",
            Self::V2_1 => "v2.1",
            Self::V2_2 => "v2.2",
            Self::V2_5 => "v2.5",
        }
    }

    /// Answers of this format carry `meta` beside `data`.
    pub fn separates_meta(self) -> bool {
        self >= Self::V2_2
    }

    /// The family of files present: v2 (as `V2_0`, refined by the manifest), v1 or v0.
    pub fn of_files(files: &FileMap) -> Option<Self> {
        if files.contains("module.yaml") || files.contains("module.yml") {
            Some(Self::V2_0)
        } else if files.contains("MODULE.md") {
            Some(Self::V1)
        } else if files.contains("module.md") {
            Some(Self::V0)
        } else {
            None
        }
    }

    /// Determines the version of a v2 module by the keys of its manifest.
    pub fn of_manifest(manifest: &Map<String, Value>) -> Self {
        let has = |keys: &[&str]| keys.iter().any(|key| manifest.contains_key(*key));
        if has(&["response", "modalities"]) {
            Self::V2_5
        } else if has(&["tier", "overflow", "enums"]) {
            Self::V2_2
        } else if has(&["policies", "failure"]) {
            Self::V2_1
        } else {
            Self::V2_0
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
