//! Programs that speak and hear, for tests: eSpeak NG from the system's packages, and PocketSphinx with its model
//! from the Python registry, in a pinned version and in a folder of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{tools, weights::cache_folder};

/// One wheel for each Python that systems in use bring.
const REQUIREMENT: &str = "\
pocketsphinx==5.1.1 \
--hash=sha256:bb8fd0fc7fb08dd8f85da21f5121f34ebf4186a5bee91ce85e2d358e69a448bf \
--hash=sha256:38ff34e47b35f0caa1b58939806c4ab86c234a13536299c8c929a3cb45761941
";

/// Makes sure that `espeak-ng` can be called.
pub fn need_voice() {
    tools::need(&[("espeak-ng", "espeak-ng")]);
}

/// The folder that has to be on `PYTHONPATH` for PocketSphinx to be found.
pub fn ear() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(install)
}

fn install() -> PathBuf {
    let cache = cache_folder().unwrap();
    let lock = File::create(cache.join("pocketsphinx.lock")).unwrap();
    lock.lock().unwrap();
    let folder = cache.join("pocketsphinx-5.1.1");
    if !folder.is_dir() {
        let draft = cache.join("pocketsphinx-5.1.1.draft");
        fs::remove_dir_all(&draft).ok();
        let site = draft.join("site");
        fs::create_dir_all(&site).unwrap();
        let wheel = tools::wheels(REQUIREMENT, &draft).remove(0);
        // A wheel without scripts of its own is installed by being unpacked.
        let unpacked = Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(&wheel)
            .arg(&site)
            .status();
        assert!(unpacked.unwrap().success(), "the package cannot be unpacked");
        fs::rename(&site, &folder).unwrap();
        fs::remove_dir_all(&draft).unwrap();
    }
    folder
}
