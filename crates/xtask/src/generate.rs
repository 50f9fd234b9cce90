//! `cargo x gen`: writes the files that are generated from code. Tests compare them with the committed files,
//! so an outdated file is detected.

use anyhow::Result;

use crate::messages;
use crate::shell::{self, cargo};

pub(crate) fn run() -> Result<()> {
    let mut tests = cargo(["test", "-p", "cogn", "--locked", "--", "generated"]);
    shell::run(tests.env("COGN_GENERATE", "1"))?;
    messages::write()
}
