//! `cargo x gen`: writes the files that are generated from code. Tests compare them with the committed files,
//! so an outdated file is detected.

use anyhow::Result;

use crate::messages;
use crate::shell;
use crate::test::workspace_tests;

pub(crate) fn run() -> Result<()> {
    // The same build as that of the tests, so that one of them is reused.
    let mut tests = workspace_tests();
    shell::run(tests.args(["--", "generated"]).env("COGN_GENERATE", "1"))?;
    messages::write()
}
