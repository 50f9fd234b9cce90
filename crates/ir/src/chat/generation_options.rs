//! Generation settings that several levels may set, such as a run, a module and a back-end. A level fills in
//! only what no level before it has set.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::chat::request::Generation;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub struct GenerationOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

impl GenerationOptions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The first value that is not valid, with the reason.
    pub fn problem(&self) -> Option<String> {
        let outside = |value: &Option<Number>, most: f64| {
            let value = value.as_ref().and_then(Number::as_f64);
            value.is_some_and(|value| !(0.0..=most).contains(&value))
        };
        if self.max_output_tokens == Some(0) {
            return Some(String::from("max_output_tokens must be at least 1"));
        }
        if outside(&self.temperature, 2.0) {
            return Some(String::from("temperature must be from 0 to 2"));
        }
        if outside(&self.top_p, 1.0) {
            return Some(String::from("top_p must be from 0 to 1"));
        }
        if self
            .seed
            .as_ref()
            .is_some_and(|seed| !seed.is_i64() && !seed.is_u64())
        {
            return Some(String::from("seed must be an integer"));
        }
        let bad_stop = self.stop.iter().any(String::is_empty);
        bad_stop.then(|| String::from("stop must not contain an empty text"))
    }

    /// Fills in the settings that the request does not have.
    pub fn fill(&self, generation: &mut Generation) {
        generation.max_tokens = generation.max_tokens.or(self.max_output_tokens);
        fill_number(&mut generation.temperature, self.temperature.as_ref());
        fill_number(&mut generation.top_p, self.top_p.as_ref());
        fill_number(&mut generation.seed, self.seed.as_ref());
        if generation.stop.is_empty() {
            generation.stop.clone_from(&self.stop);
        }
    }

    /// Whether [`Self::fill`] would change a request.
    pub fn changes(&self, generation: &Generation) -> bool {
        let mut filled = generation.clone();
        self.fill(&mut filled);
        filled != *generation
    }
}

impl From<&Generation> for GenerationOptions {
    fn from(generation: &Generation) -> Self {
        Self {
            max_output_tokens: generation.max_tokens,
            temperature: generation.temperature.clone(),
            top_p: generation.top_p.clone(),
            seed: generation.seed.clone(),
            stop: generation.stop.clone(),
        }
    }
}

fn fill_number(value: &mut Option<Number>, given: Option<&Number>) {
    if value.is_none() {
        *value = given.cloned();
    }
}
