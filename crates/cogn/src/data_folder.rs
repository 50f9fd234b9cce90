//! The data folder: the journal with the keys and usage, and the media of runs. A folder with a `cogn.toml` has
//! a data folder of its own, so that two projects of a user do not share runs and keys. It is in the state folder
//! of the user and never inside the project, which may be published.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;
use sha2::{Digest, Sha256};

use crate::config::project::project_file;
use crate::output::hinted;

/// Length limit of the part of the name that is readable.
const NAME_CHARS_MAX: usize = 40;
const HASH_HEX_CHARS: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFolder {
    pub(crate) path: PathBuf,
    /// The folder with the project's `cogn.toml`.
    pub(crate) project: Option<PathBuf>,
}

impl DataFolder {
    /// Of the project that contains the working folder, else of the user.
    pub(crate) fn from_environment() -> Result<Self> {
        let Some(state) = state_folder() else {
            return Err(hinted(
                "no home folder for the journal",
                "set its path with --journal FILE",
            ));
        };
        let file = project_file();
        Ok(Self::of(&state, file.as_deref().and_then(Path::parent)))
    }

    /// `project` is the folder with the `cogn.toml`.
    fn of(state: &Path, project: Option<&Path>) -> Self {
        let Some(project) = project else {
            return Self {
                path: state.to_path_buf(),
                project: None,
            };
        };
        let canonical = project.canonicalize().unwrap_or_else(|_| project.to_path_buf());
        Self {
            path: state.join("projects").join(folder_name(&canonical)),
            project: Some(canonical),
        }
    }

    /// The project to whose data folder a file belongs.
    pub(crate) fn owner_of(file: &Path) -> Option<PathBuf> {
        let folder = Self::from_environment().ok()?;
        folder.project.filter(|_| file.starts_with(&folder.path))
    }

    /// The folder and whose it is, for messages.
    pub(crate) fn describe(&self) -> String {
        let path = self.path.display();
        match &self.project {
            Some(project) => format!("{path} (of the project {})", project.display()),
            None => path.to_string(),
        }
    }
}

/// `cogn` in the state folder of the user.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let named = env::var_os("XDG_STATE_HOME").filter(|folder| !folder.is_empty());
    let state = named.map(PathBuf::from);
    let state = state.or_else(|| env::home_dir().map(|home| home.join(".local/state")));
    state.map(|state| state.join("cogn"))
}

/// `<name>-<hash of path>`: readable, and distinct for projects of the same name.
fn folder_name(project: &Path) -> String {
    let name = project.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') => c,
        _ => '_',
    };
    let name: String = name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    let mut hash = hex::encode(Sha256::digest(project.as_os_str().as_encoded_bytes()));
    hash.truncate(HASH_HEX_CHARS);
    format!("{name}-{hash}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::DataFolder;

    #[test]
    fn projects_of_one_name_have_separate_folders() {
        let state = Path::new("/state/cogn");
        let of = |project: &str| DataFolder::of(state, Some(Path::new(project))).path;
        let (one, two) = (of("/nowhere/a/shop"), of("/nowhere/b/shop"));
        for path in [&one, &two] {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with("shop-") && name.len() == 17, "{name}");
            assert_eq!(path.parent(), Some(Path::new("/state/cogn/projects")));
        }
        assert_ne!(one, two);
        assert_eq!(one, of("/nowhere/a/shop"));
        let odd = of("/nowhere/Größe ../x.y");
        assert!(odd.to_str().unwrap().contains("/projects/x_y-"), "{odd:?}");
        assert_eq!(DataFolder::of(state, None).path, state);
    }
}
