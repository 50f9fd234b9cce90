//! Flags for the settings of the model. They take precedence over those of the module and the back-end.

use anyhow::Result;
use clap::Args;
use ir::GenerationOptions;
use serde_json::Number;

use crate::output::hinted;

#[derive(Clone, Debug, Args)]
pub(crate) struct GenerationFlags {
    /// Maximum length of the answer in tokens.
    #[arg(long, value_name = "N")]
    max_output_tokens: Option<u64>,
    /// Randomness of the answer, from 0 to 2.
    #[arg(long, value_name = "X")]
    temperature: Option<f64>,
    /// Share of the probability from which tokens are drawn, from 0 to 1.
    #[arg(long, value_name = "X")]
    top_p: Option<f64>,
    /// Seed of the sampling, for back-ends that support it.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// A text that ends the answer. May be given several times.
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
}

impl GenerationFlags {
    pub(crate) fn options(&self) -> Result<GenerationOptions> {
        let options = GenerationOptions {
            max_output_tokens: self.max_output_tokens,
            temperature: self.temperature.and_then(Number::from_f64),
            top_p: self.top_p.and_then(Number::from_f64),
            seed: self.seed.map(Number::from),
            stop: self.stop.clone(),
        };
        match options.problem() {
            None => Ok(options),
            Some(problem) => Err(hinted(problem, "`cogn run --help` lists the settings")),
        }
    }
}
