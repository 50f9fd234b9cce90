//! Programs that tests install are pinned: exact versions with hashes, and no address of a registry. A machine may
//! use a mirror.

use serde_json::Value;

use crate::git_files;

fn is_requirements(path: &str) -> bool {
    path.ends_with("requirements.txt") || path.ends_with("schemathesis.txt")
}

/// Problems of a file of pip.
fn unpinned(requirements: &str) -> Vec<String> {
    let joined = requirements.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_pinned =
        |line: &&str| line.contains("==") && line.contains(" --hash=sha256:") && !line.contains("://");
    lines.filter(|line| !is_pinned(line)).map(String::from).collect()
}

/// Problems of a file of npm.
fn unlocked(lock: &Value) -> Vec<String> {
    let packages = lock["packages"].as_object().into_iter().flatten();
    let installed = packages.filter(|(path, _)| !path.is_empty());
    let is_locked = |package: &Value| {
        let hash = package["integrity"].as_str().unwrap_or_default();
        package["version"].is_string() && hash.starts_with("sha512-") && package.get("resolved").is_none()
    };
    let bad = installed.filter(|(_, package)| !is_locked(package));
    bad.map(|(path, _)| path.clone()).collect()
}

#[test]
fn python_packages_have_versions_and_hashes() {
    let files: Vec<_> = git_files::files()
        .into_iter()
        .filter(|path| is_requirements(path))
        .collect();
    assert!(files.len() >= 4, "{files:?}");
    for path in files {
        let found = unpinned(&git_files::read(&path));
        assert!(found.is_empty(), "{path}: {found:#?}");
    }
}

#[test]
fn node_packages_have_versions_and_hashes() {
    let files = git_files::ending("package-lock.json");
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        let lock: Value = serde_json::from_str(&git_files::read(&path)).expect("npm writes JSON");
        assert!(
            lock["packages"]
                .as_object()
                .is_some_and(|packages| packages.len() > 1),
            "{path}"
        );
        let found = unlocked(&lock);
        assert!(found.is_empty(), "{path}: {found:#?}");
    }
}

/// Otherwise a pin is not read.
#[test]
fn installers_require_pins() {
    let mut installers = 0;
    for path in git_files::ending(".rs")
        .iter()
        .filter(|path| path.contains("/tests/it/"))
    {
        let text = git_files::read(path);
        let runs_pip = text.contains("\"install\", \"--quiet\"");
        installers += usize::from(runs_pip);
        assert!(
            !runs_pip || text.contains("--require-hashes"),
            "{path} runs pip without hashes"
        );
        if text.contains("Command::new(\"npm\")") {
            installers += 1;
            assert!(text.contains("\"ci\", "), "{path} runs npm without its lock file");
            assert!(
                !text.contains("npm.args([\"install\""),
                "{path} runs npm without its lock file"
            );
        }
        assert!(
            !text.contains("Command::new(\"npx\")"),
            "{path}: npx installs what it runs"
        );
    }
    assert!(installers >= 3, "{installers}");
}

#[test]
fn packages_without_hashes_are_found() {
    let good = "# comment\na==1.0 --hash=sha256:00\nb==2 \\\n    --hash=sha256:11\n";
    assert_eq!(unpinned(good), Vec::<String>::new());
    assert_eq!(unpinned("a>=1 --hash=sha256:00\nb==2\n").len(), 2);
    let lock = |package: Value| serde_json::json!({"packages": {"": {}, "node_modules/a": package}});
    let good = serde_json::json!({"version": "1.0.0", "integrity": "sha512-AA=="});
    assert_eq!(unlocked(&lock(good.clone())), Vec::<String>::new());
    let mut addressed = good;
    addressed["resolved"] = "https://registry.example/a".into();
    assert_eq!(unlocked(&lock(addressed)).len(), 1);
    assert_eq!(unlocked(&lock(serde_json::json!({"version": "1.0.0"}))).len(), 1);
}
