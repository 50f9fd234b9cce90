use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;

fn stdout(program: &PathBuf, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn cogn() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_cogn"))
}

/// `COGN_GENERATE=1` writes the file instead.
#[test]
fn the_generated_cli_reference_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let generated = stdout(&cogn(), &["internal-docs"]);
    if std::env::var_os("COGN_GENERATE").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == generated,
        "docs/reference/cli.md is stale: run `cargo x gen`"
    );
    assert!(!generated.contains("internal-docs"));
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout(&cogn(), &["completions", shell]);
        for word in ["explain", "completions", "cogn"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn the_manual_is_one_page_or_one_for_each_command() {
    let page = stdout(&cogn(), &["man"]);
    assert!(page.contains(".TH cogn 1"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("share/man1");
    stdout(&cogn(), &["man", "--dir", inner.to_str().unwrap()]);
    for name in ["cogn.1", "cogn-explain.1", "cogn-list.1"] {
        assert!(inner.join(name).is_file(), "{name}");
    }
    assert!(!inner.join("cogn-internal-docs.1").is_file());
}

#[cfg(unix)]
#[test]
fn cog_is_the_same_program() {
    let folder = tempfile::tempdir().unwrap();
    let cog = folder.path().join("cog");
    std::os::unix::fs::symlink(cogn(), &cog).unwrap();
    assert_eq!(stdout(&cog, &["--version"]), stdout(&cogn(), &["--version"]));
    assert_eq!(
        stdout(&cog, &["explain", "E1000"]),
        stdout(&cogn(), &["explain", "E1000"])
    );
    assert!(stdout(&cog, &["--help"]).contains("Usage: cog "));
    assert!(stdout(&cog, &["completions", "bash"]).contains("complete -F _cog "));
}
