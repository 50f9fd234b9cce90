//! The modules an engine can run: an immutable set, replaced as a whole when folders change.

use std::collections::BTreeMap;
use std::sync::Arc;

use module::Module;

#[derive(Clone, Debug, Default)]
pub struct Modules(BTreeMap<String, Arc<Module>>);

impl Modules {
    pub fn get(&self, name: &str) -> Option<&Arc<Module>> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Module>)> {
        self.0.iter().map(|(name, module)| (name.as_str(), module))
    }
}

/// Of two modules of one name the first stays, as in the search order of folders.
impl FromIterator<(String, Arc<Module>)> for Modules {
    fn from_iter<I: IntoIterator<Item = (String, Arc<Module>)>>(modules: I) -> Self {
        let mut set = BTreeMap::new();
        for (name, module) in modules {
            set.entry(name).or_insert(module);
        }
        Self(set)
    }
}
