//! Half-precision floats as the bits that weights files hold.

pub(super) fn to_f32(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2.0_f32.powi(exponent - 25),
    };
    sign * magnitude
}

/// Rounds to the nearest value, and to the even one of two. Values out of range become infinite.
pub(super) fn from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = u16::from(bits >> 31 != 0) << 15;
    let magnitude = value.abs();
    // Half of a step above the largest value.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    if magnitude.is_nan() {
        return sign | 0x7e00;
    }
    // The exponent of the step between neighbours, that of subnormal values at least.
    let exponent = ((bits >> 23) & 0xff).cast_signed() - 127;
    let step = exponent.max(-14) - 10;
    let steps = (magnitude * 2.0_f32.powi(-step)).round_ties_even();
    // At most 2048, which carries into the exponent as it should.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number between 0 and 2048"
    )]
    let steps = steps as u16;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 29 after the maximum"
    )]
    let base = ((exponent.max(-14) + 14) as u16) << 10;
    sign | (base + steps)
}
