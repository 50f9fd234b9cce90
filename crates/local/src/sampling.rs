//! The knobs of a request as a chain of samplers. Without a temperature the likeliest token is taken every
//! time: a contract is better served by the same answer to the same question.

use ir::Generation;
use llama_cpp_2::sampling::LlamaSampler;
use serde_json::Number;

/// How many of the latest tokens penalties look at.
const PENALTY_TOKENS: i32 = 256;

pub(crate) fn chain(knobs: &Generation, vocabulary: i32, entropy: u32) -> LlamaSampler {
    let mut chain = Vec::new();
    let presence = float(knobs.presence_penalty.as_ref());
    let frequency = float(knobs.frequency_penalty.as_ref());
    if presence.is_some() || frequency.is_some() {
        chain.push(LlamaSampler::penalties(
            vocabulary,
            PENALTY_TOKENS,
            1.0,
            frequency.unwrap_or(0.0),
            presence.unwrap_or(0.0),
        ));
    }
    match float(knobs.temperature.as_ref()) {
        Some(temperature) if temperature > 0.0 => {
            if let Some(kept) = knobs.top_k.as_ref().and_then(Number::as_u64) {
                chain.push(LlamaSampler::top_k(i32::try_from(kept).unwrap_or(i32::MAX)));
            }
            if let Some(share) = float(knobs.top_p.as_ref()) {
                chain.push(LlamaSampler::top_p(share, 1));
            }
            chain.push(LlamaSampler::temp(temperature));
            chain.push(LlamaSampler::dist(seed(knobs).unwrap_or(entropy)));
        }
        _ => chain.push(LlamaSampler::greedy()),
    }
    LlamaSampler::chain(chain, true)
}

/// Seeds are numbers of any size; the sampler takes 32 bits, so both halves count.
fn seed(knobs: &Generation) -> Option<u32> {
    let seed = knobs.seed.as_ref()?;
    let wide = seed.as_u64().or_else(|| seed.as_i64().map(i64::cast_unsigned))?;
    let [a, b, c, d, e, f, g, h] = wide.to_le_bytes();
    Some(u32::from_le_bytes([a, b, c, d]) ^ u32::from_le_bytes([e, f, g, h]))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "samplers compute in single precision"
)]
fn float(number: Option<&Number>) -> Option<f32> {
    number.and_then(Number::as_f64).map(|number| number as f32)
}
