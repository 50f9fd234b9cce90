//! The search path of modules: folders, their order, and which modules are hidden by others.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::Result;
use module::diagnostic::nearest;

use crate::output::hinted;

/// The folders that are searched; earlier ones take precedence.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    roots: Vec<PathBuf>,
}

/// A module folder that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The folder that takes precedence over this one.
    pub(crate) shadowed_by: Option<PathBuf>,
}

impl Search {
    /// Flags, then `COGNITIVE_MODULES_PATH` from left to right, then the project, the user, the system.
    /// Folders of flags must exist; the others are optional.
    pub(crate) fn from_environment(flags: &[PathBuf]) -> Result<Self> {
        if let Some(missing) = flags.iter().find(|flag| !flag.is_dir()) {
            let hint = "--modules DIR must be a folder that contains module folders";
            return Err(hinted(format!("folder not found: {}", missing.display()), hint));
        }
        let mut roots = flags.to_vec();
        if let Some(list) = env::var_os("COGNITIVE_MODULES_PATH") {
            roots.extend(env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()));
        }
        roots.push(PathBuf::from("cognitive/modules"));
        roots.push(PathBuf::from(".cognitive/modules"));
        if let Some(home) = env::home_dir() {
            roots.push(home.join(".cognitive/modules"));
        }
        roots.push(PathBuf::from("/usr/local/share/cognitive/modules"));
        Ok(Self { roots })
    }

    /// The folders in order.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Resolves `name`: a path if it is or looks like one, otherwise the first match in the search path.
    pub(crate) fn find(&self, name: &str) -> Result<Found> {
        let literal = Path::new(name);
        if is_module(literal) {
            return Ok(Found {
                name: folder_name(literal),
                path: literal.to_path_buf(),
                shadowed_by: None,
            });
        }
        let is_path = name.contains(['/', '\\']) || name.starts_with('.');
        if !is_path {
            for root in &self.roots {
                let path = root.join(name);
                if is_module(&path) {
                    return Ok(Found {
                        name: String::from(name),
                        path,
                        shadowed_by: None,
                    });
                }
            }
        }
        Err(self.not_found(name, is_path))
    }

    /// All modules of all roots, in search order; hidden ones contain the folder that hides them.
    pub(crate) fn all(&self) -> Result<Vec<Found>> {
        self.each().collect()
    }

    /// The same as an iterator: only the names of one root are in memory at a time.
    pub(crate) fn each(&self) -> impl Iterator<Item = Result<Found>> {
        self.roots.iter().enumerate().flat_map(move |(index, root)| {
            let (names, error) = match module_names(root) {
                Ok(names) => (names, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            let earlier = self.roots.get(..index).unwrap_or_default();
            let found = names.into_iter().map(move |name| {
                let hides = earlier.iter().map(|root| root.join(&name));
                let shadowed_by = hides.into_iter().find(|path| is_module(path));
                Ok(Found {
                    path: root.join(&name),
                    name,
                    shadowed_by,
                })
            });
            error.into_iter().chain(found)
        })
    }

    /// The folder of a module by its name alone.
    pub(crate) fn lookup(&self, name: &str) -> Option<PathBuf> {
        self.roots
            .iter()
            .map(|root| root.join(name))
            .find(|path| is_module(path))
    }

    fn not_found(&self, name: &str, is_path: bool) -> anyhow::Error {
        if is_path {
            let hint = "a module folder contains module.yaml, MODULE.md or module.md";
            return hinted(format!("no module at {name}"), hint);
        }
        let all = self.all().unwrap_or_default();
        let hint = match nearest(name, all.iter().map(|found| found.name.as_str())) {
            Some(near) => format!("did you mean `{near}`? `cogn list` shows all"),
            None => {
                let roots: Vec<_> = self.roots.iter().map(|root| root.display().to_string()).collect();
                format!("searched {}; --modules DIR adds a folder", roots.join(", "))
            }
        };
        hinted(format!("no module named `{name}` (E4006)"), hint)
    }
}

fn module_names(root: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(anyhow::Error::new(error).context(format!("cannot list {}", root.display())));
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let hidden = name.starts_with('.') || name.contains("_backup_");
        if !hidden && is_module(&entry.path()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a folder contains a manifest. A pipe or a broken link with that name counts too, so that it is
/// reported and not ignored.
pub(crate) fn is_module(path: &Path) -> bool {
    ["module.yaml", "module.yml", "MODULE.md", "module.md"]
        .iter()
        .any(|file| fs::symlink_metadata(path.join(file)).is_ok())
}

fn folder_name(path: &Path) -> String {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    real.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
