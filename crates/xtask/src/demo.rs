//! `cargo x demo`: cogn on the examples, on a new machine without any key: a small model is downloaded and
//! runs in the process.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::shell::{build_cogn, root, run};

pub(crate) fn show() -> Result<()> {
    let binary = build_cogn("dev")?;
    let steps: &[(&str, &[&str])] = &[
        (
            "Every example, validated against the format.",
            &["validate", "--all"],
        ),
        ("The contract of one example.", &["info", "text-classifier"]),
        (
            "Weights of a small model, downloaded once and verified.",
            &["models", "pull"],
        ),
        (
            "A run in this process: fields are shown while the model writes, then the answer is checked against the contract.\n\
             A model of this size fills in the fields, but what it says about the message is often wrong: expect a wrong\n\
             label, a rationale that is none, or `no confidence`. `cogn doctor` names a model that suits this machine.",
            &[
                "run",
                "text-classifier",
                TEXT_CLASSIFIER_INPUT,
                "--stream",
                "--backend",
                "local",
            ],
        ),
        (
            "The same run as JSON: one envelope.",
            &[
                "run",
                "text-classifier",
                TEXT_CLASSIFIER_INPUT,
                "--json",
                "--backend",
                "local",
            ],
        ),
        (
            "A script in place of a model, with a longer answer.",
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

const TEXT_CLASSIFIER_INPUT: &str = "examples/modules/text-classifier/tests/invoice.input.json";
const CODE_SIMPLIFIER_INPUT: &str = "examples/modules/code-simplifier/tests/redundant-else.input.json";
const CODE_SIMPLIFIER_REPLY: &str = "scripted:examples/scripted/code-simplifier.yaml";

fn cogn(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .current_dir(root())
        .args(["--modules", "examples/modules"]);
    command
}

#[expect(clippy::print_stderr, reason = "a build tool prints for its user")]
fn announce(title: &str) {
    eprintln!("\n{title}");
}
