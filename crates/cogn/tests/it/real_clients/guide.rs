//! The recipes of the guide: each is a complete program and prints the output block that follows it. There,
//! `...` matches any text.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::packages::{node_modules, python, succeed};
use crate::examples::root;
use crate::harness::{Server, binary};

const SHOWN: &str = "http://127.0.0.1:8787";

#[test]
fn recipes_in_every_language_print_shown_output() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    symlink(node_modules(), folder.path().join("node_modules")).unwrap();
    let page = fs::read_to_string(root().join("docs/guide/client-recipes.md")).unwrap();
    let blocks: Vec<(&str, &str)> = page
        .split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
        .collect();
    let mut recipes = 0;
    for pair in blocks.windows(2) {
        let [(language @ ("python" | "js"), recipe), ("text", shown)] = pair else {
            continue;
        };
        recipes += 1;
        let (program, name) = match *language {
            "python" => (python(), "recipe.py"),
            _ => ("node".into(), "recipe.mjs"),
        };
        let path = folder.path().join(name);
        fs::write(&path, recipe.replace(SHOWN, &server.url)).unwrap();
        let printed = succeed(Command::new(program).arg(path).env("NO_PROXY", "127.0.0.1"));
        let mut rest = printed.as_str();
        for piece in shown.lines().flat_map(|line| line.split("...")) {
            let found = rest.split_once(piece);
            rest = found
                .unwrap_or_else(|| panic!("{recipe}\nno `{piece}` in\n{printed}"))
                .1;
        }
    }
    assert_eq!(recipes, page.matches("\n## ").count(), "each recipe is run");
}

fn serve(folder: &Path) -> Server {
    let examples = root().join("examples");
    let script = examples.join("scripted/text-classifier.yaml");
    let mut command = Command::new(binary());
    command
        .arg("--modules")
        .arg(examples.join("modules"))
        .args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--journal"])
        .arg(folder.join("journal.db"))
        .arg("--backend")
        .arg(format!("scripted:{}", script.display()))
        .current_dir(folder);
    Server::spawn(command)
}
