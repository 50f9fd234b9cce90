//! Checks of the file system: folders, free space and permissions.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::finding::Finding;
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

/// The folders that cogn writes: models in the cache folder, the journal in the state folder.
pub(super) fn folders() -> Vec<Finding> {
    let home = env::home_dir();
    let named = |variable: &str, usual: &str| {
        let named = env::var_os(variable).filter(|folder| !folder.is_empty());
        let folder = named.map(PathBuf::from);
        folder.or_else(|| Some(home.as_ref()?.join(usual)))
    };
    let kinds = [
        ("cache folder", named("XDG_CACHE_HOME", ".cache")),
        ("state folder", named("XDG_STATE_HOME", ".local/state")),
    ];
    let findings = kinds.into_iter().flat_map(|(name, folder)| match folder {
        Some(folder) => look_at(name, &folder.join("cogn")),
        None => vec![Finding::bad(name, "no home folder", "set HOME")],
    });
    findings.collect()
}

fn look_at(name: &str, folder: &Path) -> Vec<Finding> {
    let shown = folder.display();
    // The nearest existing ancestor: missing folders are created on first use.
    let Some(there) = folder.ancestors().find(|folder| folder.is_dir()) else {
        return vec![Finding::bad(name, format!("cannot create {shown}"), "set HOME")];
    };
    let writable = rustix::fs::access(there, rustix::fs::Access::WRITE_OK).is_ok();
    let mut findings = vec![match writable {
        true => Finding::ok(name, shown.to_string()),
        false => Finding::bad(
            name,
            format!("{} is not writable", there.display()),
            "make it writable, or set XDG_CACHE_HOME and XDG_STATE_HOME",
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
