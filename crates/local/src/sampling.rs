//! The sampling settings of a request as a chain of samplers. Without a temperature sampling is greedy, so
//! that the same request gives the same answer.

use ir::Generation;
use llama_cpp_2::sampling::LlamaSampler;
use serde_json::Number;

/// Number of latest tokens to which penalties apply.
const PENALTY_TOKENS: i32 = 256;

pub(crate) fn chain(settings: &Generation, vocabulary: i32, entropy: u32) -> LlamaSampler {
    let mut chain = Vec::new();
    let presence = float(settings.presence_penalty.as_ref());
    let frequency = float(settings.frequency_penalty.as_ref());
    if presence.is_some() || frequency.is_some() {
        chain.push(LlamaSampler::penalties(
            vocabulary,
            PENALTY_TOKENS,
            1.0,
            frequency.unwrap_or(0.0),
            presence.unwrap_or(0.0),
        ));
    }
    match float(settings.temperature.as_ref()) {
        Some(temperature) if temperature > 0.0 => {
            if let Some(count) = settings.top_k.as_ref().and_then(Number::as_u64) {
                chain.push(LlamaSampler::top_k(i32::try_from(count).unwrap_or(i32::MAX)));
            }
            if let Some(share) = float(settings.top_p.as_ref()) {
                chain.push(LlamaSampler::top_p(share, 1));
            }
            chain.push(LlamaSampler::temp(temperature));
            chain.push(LlamaSampler::dist(seed(settings).unwrap_or(entropy)));
        }
        _ => chain.push(LlamaSampler::greedy()),
    }
    LlamaSampler::chain(chain, true)
}

/// Seeds have up to 64 bits; the sampler takes 32, so both halves are combined.
fn seed(settings: &Generation) -> Option<u32> {
    let seed = settings.seed.as_ref()?;
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
