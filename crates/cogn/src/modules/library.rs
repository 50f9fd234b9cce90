//! The modules that a module may call, by name, loaded on first use: from the search path, or from the parent
//! folder of the module.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::Modules;
use module::Module;
use module::compose::{build, dependencies};

use super::{Search, is_module};
use crate::wiring;

pub(crate) struct Library<'a> {
    search: &'a Search,
    /// The parent folder of the module.
    beside: Option<PathBuf>,
    known: RefCell<HashMap<String, Option<Arc<Module>>>>,
}

impl<'a> Library<'a> {
    /// The library of the module in `folder`.
    pub(crate) fn around(search: &'a Search, folder: &Path) -> Self {
        let real = std::fs::canonicalize(folder).ok();
        Self {
            search,
            beside: real.and_then(|real| Some(real.parent()?.to_path_buf())),
            known: RefCell::default(),
        }
    }

    /// The module with this name. A module that cannot be loaded is treated as not found.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Module>> {
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        if !plain {
            return None;
        }
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let beside = || {
            let path = self.beside.as_ref()?.join(name);
            is_module(&path).then_some(path)
        };
        let path = self.search.lookup(name).or_else(beside);
        let module = path
            .and_then(|path| wiring::load_module(&path).ok())
            .map(Arc::new);
        self.known.borrow_mut().insert(String::from(name), module.clone());
        module
    }

    /// All modules reachable from `root`, by the names used to refer to them. Nothing is loaded for a module
    /// without dependencies.
    pub(crate) fn reachable(&self, root: &Arc<Module>) -> Modules {
        if dependencies(root).is_empty() {
            return Modules::default();
        }
        build(root, &|name| self.find(name));
        let known = self.known.borrow();
        let found = known
            .iter()
            .filter_map(|(name, module)| Some((name.clone(), module.clone()?)));
        found.collect()
    }
}
