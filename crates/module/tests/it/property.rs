//! The number of cases of a property test: a bounded default, or the number from the environment. Rejected
//! inputs do not count as cases; a test that rejects nearly all of its inputs fails.

use proptest::prelude::ProptestConfig;

pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig::default().cases;
    let cases = if asked > 256 { asked } else { usual };
    ProptestConfig {
        cases,
        max_global_rejects: 8 * cases,
        ..ProptestConfig::default()
    }
}
