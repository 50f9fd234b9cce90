//! Which failures acknowledged writes survive. `docs/reference/durability.md` lists what each setting can lose.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Acknowledged writes survive the end of the process, also a killed one.
    #[default]
    Process,
    /// Acknowledged writes survive a power failure: each is synced to disk first.
    Power,
}
