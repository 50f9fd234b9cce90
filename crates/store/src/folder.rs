//! Folders of stores: created for their owner only, and synced, so that a power failure does not remove a file
//! whose content was synced.

use std::fs::File;
use std::io;
use std::path::Path;

/// Creates a folder that only its owner can access; an existing folder keeps its permissions. The names of new
/// folders are synced to disk.
pub(crate) fn create_private_dir(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| matches!(folder.try_exists(), Ok(false)))
        .collect();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    missing.into_iter().try_for_each(sync_folder_of)
}

/// Syncs the folder of a file or folder, so that its name is on disk.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    match File::open(folder)?.sync_all() {
        // Not every file system can sync a folder.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}
