//! Checks of the journal: records that could not be read when a server started.

use store::StoreUrl;
use store::sqlite::{QuarantinedLog, quarantined};

use super::finding::Finding;
use crate::server_setup::configured_store_url;

/// One finding for each file. Without a valid configuration the path of the journal is unknown, which is a
/// finding of its own.
pub(super) fn quarantine() -> Vec<Finding> {
    let Ok(StoreUrl::Sqlite(path)) = configured_store_url() else {
        return Vec::new();
    };
    match quarantined(&path) {
        Ok(found) if found.is_empty() => {
            vec![Finding::ok("accounting records", "no unreadable records")]
        }
        Ok(found) => found.iter().map(unreadable).collect(),
        Err(error) => {
            let message = format!("cannot read the folder of {}: {error}", path.display());
            vec![Finding::warn("accounting records", message, "make it readable")]
        }
    }
}

fn unreadable(log: &QuarantinedLog) -> Finding {
    let changed = match log.is_unchanged {
        true => "",
        false => ", changed since",
    };
    let message = format!(
        "{} unreadable in {} (SHA-256 {}{changed})",
        log.unreadable,
        log.path.display(),
        log.sha256
    );
    Finding::warn(
        "accounting records",
        message,
        "their calls are missing in `cogn usage`; check the disk, then move the file away",
    )
}
