//! Files as a crash leaves them: what was synced, and some of what was not.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::recorder::{ACKNOWLEDGED, Kind, Operation};

#[derive(Clone, Copy, Debug)]
pub(super) enum Crash {
    /// The process ended: the system has all that was written.
    Killed,
    /// The power failed: what was not synced is gone.
    UnsyncedLost,
    /// The power failed: some of what was not synced is on disk, cut at any byte. The number selects it.
    UnsyncedTorn(u64),
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, data: Vec<u8> },
    Truncate(usize),
}

#[derive(Debug, Default)]
struct Inode {
    synced: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Add(String, usize),
    Remove(String),
    Rename(String, String),
}

type Names = HashMap<String, usize>;

/// The folder of the store.
#[derive(Debug, Default)]
pub(super) struct Disk {
    inodes: Vec<Inode>,
    names: Names,
    synced_names: Names,
    unsynced_names: Vec<NameChange>,
}

impl Disk {
    pub(super) fn apply(&mut self, operation: &Operation) {
        let path = operation.path.as_str();
        match operation.kind {
            Kind::Create => {
                self.inodes.push(Inode::default());
                self.change_name(NameChange::Add(String::from(path), self.inodes.len() - 1));
            }
            Kind::Unlink => self.change_name(NameChange::Remove(String::from(path))),
            Kind::Rename => {
                let to = operation.text();
                self.change_name(NameChange::Rename(String::from(path), to));
            }
            Kind::Sync if path.is_empty() => {
                self.unsynced_names.clear();
                self.synced_names = self.names.clone();
            }
            Kind::Sync => {
                let inode = self.inode(path);
                for change in std::mem::take(&mut inode.unsynced) {
                    change.apply(&mut inode.synced);
                }
            }
            Kind::Write => {
                let (offset, data) = (operation.offset, operation.data.clone());
                self.inode(path).unsynced.push(Change::Write { offset, data });
            }
            Kind::Truncate => {
                let change = Change::Truncate(operation.offset);
                self.inode(path).unsynced.push(change);
            }
        }
    }

    /// What the scenario had acknowledged.
    pub(super) fn acknowledged(&self) -> String {
        let bytes = self
            .names
            .get(ACKNOWLEDGED)
            .map(|inode| self.content(*inode, |change| Some(change.clone())));
        String::from_utf8(bytes.unwrap_or_default()).unwrap()
    }

    /// Writes the files as they are after the crash.
    pub(super) fn write(&self, crash: Crash, folder: &Path) {
        let mut random = match crash {
            Crash::UnsyncedTorn(seed) => Random(seed),
            Crash::Killed | Crash::UnsyncedLost => Random(0),
        };
        for (name, inode) in self.names_after(crash, &mut random) {
            let content = self.content(inode, |change| match crash {
                Crash::Killed => Some(change.clone()),
                Crash::UnsyncedLost => None,
                Crash::UnsyncedTorn(_) => random.tear(change),
            });
            fs::write(folder.join(name), content).unwrap();
        }
    }

    fn names_after(&self, crash: Crash, random: &mut Random) -> Vec<(String, usize)> {
        let mut names = self.synced_names.clone();
        let changes = match crash {
            Crash::Killed => self.unsynced_names.len(),
            Crash::UnsyncedLost => 0,
            // File systems keep the order of these.
            Crash::UnsyncedTorn(_) => random.below(self.unsynced_names.len() + 1),
        };
        for change in &self.unsynced_names[..changes] {
            change.apply(&mut names);
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort();
        names
    }

    fn content(&self, inode: usize, mut keep: impl FnMut(&Change) -> Option<Change>) -> Vec<u8> {
        let inode = &self.inodes[inode];
        let mut content = inode.synced.clone();
        for change in inode.unsynced.iter().filter_map(&mut keep) {
            change.apply(&mut content);
        }
        content
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    fn inode(&mut self, path: &str) -> &mut Inode {
        let inode = self
            .names
            .get(path)
            .unwrap_or_else(|| panic!("{path} does not exist"));
        &mut self.inodes[*inode]
    }
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Add(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
            Self::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => {
                let end = offset + data.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(data);
            }
            Self::Truncate(bytes) => content.resize(*bytes, 0),
        }
    }
}

/// Repeatable: a failure is found again by its number.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        // The constants of a linear congruential generator by Knuth; its upper bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    /// A third is lost, a third is cut, a third is complete.
    fn tear(&mut self, change: &Change) -> Option<Change> {
        match (self.below(3), change) {
            (0, _) => None,
            (1, Change::Write { offset, data }) => Some(Change::Write {
                offset: *offset,
                data: data[..self.below(data.len() + 1)].to_vec(),
            }),
            (_, change) => Some(change.clone()),
        }
    }
}
