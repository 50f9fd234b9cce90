//! One file per command: its flags, its action and its output.

pub(crate) mod backends;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod compose;
pub(crate) mod config;
pub(crate) mod conformance;
pub(crate) mod convert;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod gate;
pub(crate) mod info;
pub(crate) mod internal_docs;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod models;
pub(crate) mod new;
pub(crate) mod route;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod test;
pub(crate) mod trust;
pub(crate) mod usage;
pub(crate) mod validate;

use anyhow::Result;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::modules::Search;
use crate::output::Output;

pub(crate) fn run(cli: Cli, output: &Output) -> Result<Exit> {
    let search = Search::from_environment(&cli.global.modules)?;
    match cli.command {
        Command::Validate(validate) => validate.run(&search, output),
        Command::List(list) => list.run(&search, output),
        Command::Info(info) => info.run(&search, output),
        Command::New(new) => new.run(output),
        Command::Check(check) => check.run(&search, output),
        Command::Migrate(migrate) => migrate.run(&search, output),
        Command::Route(route) => route.run(&search, output),
        Command::Run(run) => run.run(&search, output),
        Command::Gate(gate) => gate.run(output),
        Command::Compose(compose) => compose.run(&search, output),
        Command::Test(test) => test.run(&search, output),
        Command::Serve(serve) => serve.run(&search, output),
        Command::Mcp(mcp) => mcp.run(&search, output),
        Command::Keys(keys) => keys.run(output),
        Command::Usage(usage) => usage.run(output),
        Command::Conformance(conformance) => conformance.run(output),
        Command::Convert(convert) => convert.run(output),
        Command::Backends(backends) => backends.run(output),
        Command::Doctor(doctor) => doctor.run(&search, output),
        Command::Config(config) => config.run(output),
        Command::Trust(trust) => trust.run(output),
        Command::Models(models) => models.run(output),
        Command::Explain(explain) => explain.run(output),
        Command::Completions(completions) => completions.run(output),
        Command::Man(man) => man.run(output),
        Command::InternalDocs(docs) => docs.run(output),
    }
}
