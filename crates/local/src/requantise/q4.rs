//! Blocks of 32 weights with four bits each. Q4_1: scale, minimum, and nibbles n with weight = scale * n + minimum.
//! Q4_0: scale, and nibbles n with weight = scale * (n - 8).

use super::half;

pub(super) const Q4_1_BYTES: u64 = 20;
pub(super) const Q4_0_BYTES: u64 = 18;

/// The nibbles to which the weight with the largest magnitude is tried to be mapped, as the distance from zero. The
/// scale with the smallest squared error is used: the error is a tenth less than with 8 alone, and finer steps gain
/// nothing.
const DISTANCES: [f32; 8] = [-8.0, 8.0, -7.0, 7.0, -7.5, 7.5, -8.5, 8.5];

/// Converts a Q4_1 block to a Q4_0 block.
pub(super) fn requantise(block: &[u8; 20]) -> [u8; 18] {
    let [a, b, c, d, nibbles @ ..] = block;
    let scale = half::to_f32(u16::from_le_bytes([*a, *b]));
    let minimum = half::to_f32(u16::from_le_bytes([*c, *d]));
    let weights = unpack(nibbles).map(|nibble| scale * f32::from(nibble) + minimum);
    let (scale, nibbles) = nearest(&weights);
    let mut result = [0; 18];
    let [low, high, packed @ ..] = &mut result;
    [*low, *high] = scale.to_le_bytes();
    *packed = pack(&nibbles);
    result
}

/// The scale, as bits, and the nibbles with the smallest squared error.
fn nearest(weights: &[f32; 32]) -> (u16, [u8; 32]) {
    let mut largest = 0.0_f32;
    for weight in weights {
        if weight.abs() > largest.abs() {
            largest = *weight;
        }
    }
    let mut best = (f32::INFINITY, 0, [8; 32]);
    // All weights are zero, or not numbers.
    if largest == 0.0 || !largest.is_finite() {
        return (best.1, best.2);
    }
    for distance in DISTANCES {
        let inverse = distance / largest;
        let steps = weights.map(|weight| (weight * inverse + 8.5).floor().clamp(0.0, 15.0) - 8.0);
        let mut product = 0.0;
        let mut square = 0.0;
        for (weight, step) in weights.iter().zip(&steps) {
            product += weight * step;
            square += step * step;
        }
        let bits = half::from_f32(product / square);
        let scale = half::to_f32(bits);
        let mut error = 0.0;
        for (weight, step) in weights.iter().zip(&steps) {
            let difference = scale * step - weight;
            error += difference * difference;
        }
        if error < best.0 {
            best = (error, bits, steps.map(nibble));
        }
    }
    (best.1, best.2)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number between -8 and 7"
)]
fn nibble(step: f32) -> u8 {
    (step + 8.0) as u8
}

/// The low nibbles are the first 16 weights, the high nibbles the others.
pub(super) fn unpack(packed: &[u8; 16]) -> [u8; 32] {
    std::array::from_fn(|index| {
        let byte = packed.get(index % 16).copied().unwrap_or_default();
        if index < 16 { byte & 15 } else { byte >> 4 }
    })
}

fn pack(nibbles: &[u8; 32]) -> [u8; 16] {
    let (low, high) = nibbles.split_at(16);
    let mut pairs = low.iter().zip(high).map(|(low, high)| low | high << 4);
    std::array::from_fn(|_| pairs.next().unwrap_or_default())
}
