//! `cargo x gen`: what is generated from code is written again. Tests compare it with what is checked in,
//! so forgetting this is found out.

use anyhow::Result;

use crate::shell::{self, cargo};

pub(crate) fn run() -> Result<()> {
    let mut tests = cargo(["test", "-p", "cogn", "--locked", "--", "generated"]);
    shell::run(tests.env("COGN_GENERATE", "1"))
}
