//! Files of other users are refused: their owner could change what cogn does.

use std::path::Path;

use anyhow::Result;

use crate::output::hinted;

/// Fails if the file belongs to neither the current user nor root. Only Unix has owners as numbers; on other
/// systems trust alone decides.
pub(crate) fn refuse_other_owners(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // A file that cannot be examined cannot be read either; reading it reports why.
        if let Ok(metadata) = std::fs::metadata(path) {
            check(path, metadata.uid(), rustix::process::geteuid().as_raw())?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn check(path: &Path, owner: u32, user: u32) -> Result<()> {
    const ROOT: u32 = 0;
    if owner == user || owner == ROOT {
        return Ok(());
    }
    let shown = path.display();
    Err(hinted(
        format!("{shown} belongs to another user (uid {owner}), so it is not read"),
        format!(
            "if you trust that user, pass it as --config '{shown}'; otherwise work in a folder without this file"
        ),
    ))
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::Path;

    use super::check;

    #[test]
    fn only_own_files_and_those_of_root_are_read() {
        let path = Path::new("/shared/cogn.toml");
        for (owner, user, read) in [
            (1000, 1000, true),
            (0, 1000, true),
            (1001, 1000, false),
            (1000, 0, false),
        ] {
            assert_eq!(check(path, owner, user).is_ok(), read, "{owner} {user}");
        }
        let error = check(path, 1001, 1000).expect_err("refused").to_string();
        assert!(error.contains("another user (uid 1001)"), "{error}");
    }
}
