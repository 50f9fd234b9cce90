//! What `cargo x test` needs besides the Rust toolchain: programs of the system, and downloads from package
//! registries. What is missing is printed with its reason before it is installed; without the permission to
//! install it, the command ends with the list.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::native_deps::{install, may_install};

/// Program, Debian package, what needs it.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "python3",
        "python3",
        "runs the Python client, the clients of vendors, and schemathesis",
    ),
    (
        "node",
        "nodejs",
        "runs the TypeScript client and the clients of vendors",
    ),
    ("npm", "npm", "installs the packages of the TypeScript clients"),
    (
        "ffmpeg",
        "ffmpeg",
        "makes pictures, sound and films for the tests of media",
    ),
    (
        "exiftool",
        "libimage-exiftool-perl",
        "writes and reads metadata of media",
    ),
    ("pdfinfo", "poppler-utils", "reads documents that were processed"),
    ("webpmux", "webp", "writes metadata of WebP pictures"),
    ("ps2pdf", "ghostscript", "makes documents"),
    ("espeak-ng", "espeak-ng", "speaks, for programs as back-ends"),
    ("faketime", "faketime", "changes the clock of a server under test"),
    ("chromium", "chromium", "calls the server from a web page"),
    ("tar", "tar", "unpacks source archives"),
];

/// What tests download themselves, once, into the user's cache folder; everything is pinned by hashes.
const DOWNLOADS: &[(&str, &str)] = &[
    (
        "Python registry",
        "clients of OpenAI and Anthropic, which call the server; schemathesis, which checks it against its OpenAPI document",
    ),
    (
        "Python registry",
        "the JSON Schema Test Suite, PocketSphinx for recognised speech, and the weights of two small models",
    ),
    (
        "Node.js registry",
        "clients of OpenAI and Anthropic, and what compiles the TypeScript client",
    ),
];

/// Prints what is missing and what tests download, and installs the former.
#[expect(clippy::print_stderr, reason = "a build tool prints for its user")]
pub(crate) fn ensure() -> Result<()> {
    let mut missing: Vec<(&str, &str, &str)> = PROGRAMS
        .iter()
        .copied()
        .filter(|(program, ..)| !is_installed(program))
        .collect();
    if !has_venv() {
        let reason = "separates the Python packages of tests from those of the system";
        missing.push(("python3 -m venv", "python3-venv", reason));
        missing.push((
            "python3 -m pip",
            "python3-pip",
            "installs the Python packages of tests",
        ));
    }
    eprintln!("Tests download into the user's cache folder, unless they have:");
    for (registry, what) in DOWNLOADS {
        eprintln!("  from the {registry}: {what}");
    }
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("Missing programs, and why tests need them:");
    for (program, package, reason) in &missing {
        eprintln!("  {program} (package {package}): {reason}");
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package, _)| *package).collect();
    if !may_install() {
        bail!(
            "install {} (or the equivalent packages) and run this again",
            packages.join(" ")
        );
    }
    eprintln!("Installing them.");
    install(&packages)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Debian packages these modules of Python separately.
fn has_venv() -> bool {
    let mut python = Command::new("python3");
    python
        .args(["-c", "import venv, ensurepip, pip"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::PROGRAMS;
    use crate::git_files;

    /// Tests name the programs that they require, with their packages.
    #[test]
    fn programs_of_tests_are_listed_with_their_reason() {
        let mut found = 0;
        let own = |path: &String| path.ends_with("/test_deps.rs");
        for path in git_files::ending(".rs").iter().filter(|path| !own(path)) {
            let text = git_files::read(path);
            for call in text.split("require(&[").skip(1) {
                let list = call.split_once(']').map_or("", |(list, _)| list);
                let words: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
                for pair in words.chunks(2) {
                    let [program, package] = pair else {
                        panic!("{path}: {list} is not a list of programs and packages")
                    };
                    let listed = PROGRAMS
                        .iter()
                        .any(|(known, of, _)| known == program && of == package);
                    assert!(
                        listed,
                        "{path} requires {program} from {package}, which is not listed"
                    );
                    found += 1;
                }
            }
        }
        assert!(found > 8, "only {found} programs were found");
    }
}
