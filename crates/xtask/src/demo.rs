//! `cargo x demo`: cogn at work on the examples, with nothing but what is in this repository. The back-end
//! is scripted: it plays a recorded answer, so that no key and no network are needed.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::shell::{build_cogn, root, run};

pub(crate) fn show() -> Result<()> {
    let binary = build_cogn("dev")?;
    let steps: &[(&str, &[&str])] = &[
        (
            "Every example, checked against its format.",
            &["validate", "--all"],
        ),
        ("What one of them promises.", &["info", "text-classifier"]),
        (
            "A run: the fields appear while the answer is written, then it is proven against the contract.",
            &[
                "run",
                "code-simplifier",
                CODE_SIMPLIFIER_INPUT,
                "--stream",
                "--backend",
                CODE_SIMPLIFIER_REPLY,
            ],
        ),
    ];
    for (title, arguments) in steps {
        announce(title);
        run(cogn(&binary).args(*arguments))?;
    }
    Ok(())
}

const CODE_SIMPLIFIER_INPUT: &str = "examples/modules/code-simplifier/tests/redundant-else.input.json";
const CODE_SIMPLIFIER_REPLY: &str = "scripted:examples/scripted/code-simplifier.yaml";

fn cogn(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .current_dir(root())
        .args(["--modules", "examples/modules"]);
    command
}

#[expect(
    clippy::print_stderr,
    reason = "a build tool talks to the person who called it"
)]
fn announce(title: &str) {
    eprintln!("\n{title}");
}
