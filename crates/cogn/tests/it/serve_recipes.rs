//! The recipes of the guides for serving and for vendors' clients: every block of `curl` is run against a
//! real server and prints the output block that follows it. There, `...` matches any text.

use std::fs;
use std::process::Command;

use crate::examples::root;
use crate::harness::{Server, binary};

const PAGES: [&str; 2] = ["docs/guide/serving.md", "docs/guide/vendor-clients.md"];
const SHOWN: &str = "http://127.0.0.1:8787";

#[test]
fn recipes_print_shown_output() {
    let folder = tempfile::tempdir().unwrap();
    let examples = root().join("examples");
    let mut command = Command::new(binary());
    command
        .arg("--modules")
        .arg(examples.join("modules"))
        .args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--journal"])
        .arg(folder.path().join("journal.db"))
        .arg("--backend")
        .arg(format!(
            "scripted:{}",
            examples.join("scripted/text-classifier.yaml").display()
        ))
        .current_dir(folder.path());
    let server = Server::spawn(command);
    for page in PAGES {
        let (recipes, curls) = play(page, &server);
        assert!(
            recipes >= 8 && (recipes..=recipes + 2).contains(&curls),
            "{recipes} of {curls} recipes of {page} were run"
        );
    }
}

/// Runs the recipes of a page; returns how many were run, and how many calls the page contains.
pub(crate) fn play(page: &str, server: &Server) -> (usize, usize) {
    let page = fs::read_to_string(root().join(page)).unwrap();
    let blocks: Vec<(&str, &str)> = page
        .split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
        .collect();
    let mut recipes = 0;
    for pair in blocks.windows(2) {
        let [("sh", recipe), ("text", shown)] = pair else {
            continue;
        };
        recipes += 1;
        let output = Command::new("sh")
            .args(["-e", "-c", &recipe.replace(SHOWN, &server.url)])
            .current_dir(root())
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{recipe}\n{printed}");
        let mut rest = printed.as_str();
        for piece in shown.lines().flat_map(|line| line.split("...")) {
            let found = rest.split_once(piece);
            rest = found
                .unwrap_or_else(|| panic!("{recipe}\nno `{piece}` in\n{printed}"))
                .1;
        }
    }
    (recipes, page.matches("curl ").count())
}
