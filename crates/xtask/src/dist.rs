//! `cargo x dist`: the release archive with both names of the binary, completions, manual pages and licences,
//! and its checksum.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::release;
use crate::shell::{capture, root, run, target};

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

#[derive(Args)]
pub(crate) struct Dist {
    /// Lay out the code by a profile: less CPU time and idle memory, a build that takes twice as long.
    #[arg(long)]
    bolt: bool,
}

impl Dist {
    pub(crate) fn run(&self) -> Result<()> {
        pack(&release::build(self.bolt)?)
    }
}

fn pack(binary: &Path) -> Result<()> {
    let version = capture(Command::new(binary).arg("--version"))?;
    let version = version
        .split_whitespace()
        .nth(1)
        .context("`cogn --version` prints no version")?;
    let name = format!(
        "cogn-{version}-{}-{}",
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    let archive_dir = target(release::PROFILE)?.join("archive");
    let folder = archive_dir.join(&name);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    fs::create_dir_all(folder.join("completions"))?;
    fs::copy(binary, folder.join("cogn"))?;
    link_alias(&folder)?;
    for shell in SHELLS {
        let script = capture(Command::new(binary).args(["completions", shell]))?;
        fs::write(folder.join("completions").join(format!("cogn.{shell}")), script)?;
    }
    run(Command::new(binary)
        .args(["man", "--dir"])
        .arg(folder.join("man")))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(root().join(file), folder.join(file))?;
    }
    let archive = format!("{name}.tar.gz");
    run(Command::new("tar")
        .current_dir(&archive_dir)
        .args(["-czf", &archive, &name]))?;
    let sum = capture(Command::new("sha256sum").current_dir(&archive_dir).arg(&archive))?;
    fs::write(archive_dir.join(format!("{archive}.sha256")), &sum)?;
    report(&archive_dir.join(archive), &sum);
    Ok(())
}

/// `cog` is the former name of the program.
fn link_alias(folder: &Path) -> Result<()> {
    #[cfg(unix)]
    std::os::unix::fs::symlink("cogn", folder.join("cog"))?;
    #[cfg(not(unix))]
    fs::copy(folder.join("cogn"), folder.join("cog"))?;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "a build tool prints for its user")]
fn report(archive: &Path, sum: &str) {
    eprintln!("{}\nsha256 {}", archive.display(), sum.trim());
}
