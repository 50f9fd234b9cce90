//! Whether this processor has the instructions for which the runtime was compiled. Known only for portable builds: they
//! use a fixed set. A build for the machine on which it was made does not record which instructions it uses.

/// Whether the build was not made for this machine only, with `GGML_NATIVE=ON`.
fn is_portable() -> bool {
    option_env!("GGML_NATIVE") != Some("ON")
}

/// The instructions that this processor lacks.
pub(crate) fn missing() -> Vec<&'static str> {
    match is_portable() {
        true => lacking(&instructions()),
        false => Vec::new(),
    }
}

#[cfg(target_arch = "x86_64")]
fn instructions() -> Vec<(&'static str, bool)> {
    vec![
        ("SSE4.2", std::is_x86_feature_detected!("sse4.2")),
        ("AVX2", std::is_x86_feature_detected!("avx2")),
        ("FMA", std::is_x86_feature_detected!("fma")),
        ("F16C", std::is_x86_feature_detected!("f16c")),
        ("BMI2", std::is_x86_feature_detected!("bmi2")),
    ]
}

/// Elsewhere the portable set is that of the target.
#[cfg(not(target_arch = "x86_64"))]
fn instructions() -> Vec<(&'static str, bool)> {
    Vec::new()
}

fn lacking(instructions: &[(&'static str, bool)]) -> Vec<&'static str> {
    let lacking = instructions.iter().filter(|(_, is_present)| !is_present);
    lacking.map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::lacking;

    #[test]
    fn missing_instructions_are_named() {
        assert_eq!(
            lacking(&[("SSE4.2", true), ("AVX2", false), ("FMA", false)]),
            ["AVX2", "FMA"]
        );
        assert!(lacking(&[("AVX2", true)]).is_empty());
    }
}
