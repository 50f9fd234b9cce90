//! Checks of the file system: folders, free space and permissions.

use std::fs;
use std::path::Path;

use super::finding::Finding;
use crate::data_folder::DataFolder;
use crate::models::ModelStore;
use crate::modules::Search;

const SPACE_LOW_BYTES: u64 = 1024 * 1024 * 1024;
const SPACE_OUT_BYTES: u64 = 100 * 1024 * 1024;

pub(super) fn modules(search: &Search) -> Finding {
    let roots = search.roots().iter().map(|root| root.display().to_string());
    let roots = roots.collect::<Vec<_>>().join(", ");
    match search.all() {
        Ok(found) if found.is_empty() => Finding::warn(
            "modules",
            format!("none found in {roots}"),
            "create one with `cogn new NAME`, or set other folders with --modules DIR or COGNITIVE_MODULES_PATH",
        ),
        Ok(found) => Finding::ok("modules", format!("{} found", found.len())),
        Err(error) => Finding::bad("modules", format!("{error:#}"), "make the folders readable"),
    }
}

/// The folders that cogn writes: models, and the data of the project or the user.
pub(super) fn folders() -> Vec<Finding> {
    let mut findings = match ModelStore::from_environment() {
        Ok(store) => look_at(
            "models folder",
            &store.folder,
            &store.folder.display().to_string(),
        ),
        Err(error) => vec![Finding::bad(
            "models folder",
            error.to_string(),
            "set COGN_MODELS_DIR",
        )],
    };
    findings.extend(match DataFolder::from_environment() {
        Ok(folder) => look_at("data folder", &folder.path, &folder.describe()),
        Err(error) => vec![Finding::bad(
            "data folder",
            error.to_string(),
            "set HOME or XDG_STATE_HOME",
        )],
    });
    findings
}

fn look_at(name: &str, folder: &Path, shown: &str) -> Vec<Finding> {
    // The nearest existing ancestor: missing folders are created on first use.
    let Some(there) = folder.ancestors().find(|folder| folder.is_dir()) else {
        return vec![Finding::bad(name, format!("cannot create {shown}"), "set HOME")];
    };
    let writable = rustix::fs::access(there, rustix::fs::Access::WRITE_OK).is_ok();
    let mut findings = vec![match writable {
        true => Finding::ok(name, shown),
        false => Finding::bad(
            name,
            format!("{} is not writable", there.display()),
            "make it writable, or set COGN_MODELS_DIR and XDG_STATE_HOME",
        ),
    }];
    if let Ok(space) = rustix::fs::statvfs(there) {
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let message = format!("{} MiB free at {}", free / (1024 * 1024), there.display());
        let name = format!("disk space, {name}");
        findings.push(match free {
            ..SPACE_OUT_BYTES => Finding::bad(name, message, "free some space"),
            SPACE_OUT_BYTES..SPACE_LOW_BYTES => {
                Finding::warn(name, message, "a model may not fit; free some space")
            }
            _ => Finding::ok(name, message),
        });
    }
    findings
}

/// A warning if other users can read the secret file.
#[cfg(unix)]
pub(super) fn too_open(path: &Path) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        let message = format!("{} is readable by other users", path.display());
        Finding::warn("secret file", message, "run `chmod 600` on it")
    })
}

#[cfg(not(unix))]
pub(super) fn too_open(_path: &Path) -> Option<Finding> {
    None
}
