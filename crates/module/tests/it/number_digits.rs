//! Numbers of business data keep their value from the reply to the envelope and to the chunks: integers of up to
//! 64 bits and fractions of up to 15 significant digits. All others become the nearest double.

use module::manifest::ChunkType;
use module::stream::{Projector, ProjectorOptions};
use proptest::prelude::*;
use serde_json::Value;

use crate::envelope_sample::{check, decision, reply};

/// The number as the envelope and the chunks write it.
fn written(number: &str) -> (String, String) {
    let text = reply(&[("/data/x_n", Value::from("(number)"))]).replace("\"(number)\"", number);
    let envelope = check(decision(), &text);
    let data = envelope["data"].as_object().expect("the reply is valid");
    let mut projector = Projector::new(ProjectorOptions {
        chunk_type: ChunkType::Delta,
        buffer_bytes: 0,
    });
    let mut chunks = Vec::new();
    for piece in text.as_bytes().chunks(3) {
        projector.push_text(
            std::str::from_utf8(piece).expect("the reply is ASCII"),
            &mut chunks,
        );
    }
    projector.finish(data, &mut chunks);
    let mut chunks = chunks.into_iter().map(|chunk| chunk.into_value()["chunk"].take());
    let chunk = chunks
        .find(|chunk| chunk["field"] == "data.x_n")
        .expect("the field has a chunk");
    (data["x_n"].to_string(), chunk["data"].to_string())
}

/// Digits without zeros at either end, and the exponent of the last one.
fn decimal(number: &str) -> (bool, String, i64) {
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut exponent: i64 = exponent.trim_start_matches('+').parse().expect("an exponent");
    exponent -= i64::try_from(fraction.len()).expect("a short fraction");
    let digits = format!("{whole}{fraction}");
    let short = digits.trim_end_matches('0');
    exponent += i64::try_from(digits.len() - short.len()).expect("a short number");
    match short.trim_start_matches('0') {
        "" => (negative, String::new(), 0),
        digits => (negative, String::from(digits), exponent),
    }
}

proptest! {
    #[test]
    fn integers_of_64_bits_keep_their_digits(signed: i64, unsigned: u64) {
        for number in [signed.to_string(), unsigned.to_string()] {
            prop_assert_eq!(written(&number), (number.clone(), number));
        }
    }

    #[test]
    fn fractions_of_15_digits_keep_their_value(
        sign in "-?",
        whole in "0|[1-9][0-9]{0,6}",
        fraction in "[0-9]{1,8}",
        exponent in prop_oneof![Just(String::new()), (-280..280i32).prop_map(|exponent| format!("e{exponent}"))],
    ) {
        let number = format!("{sign}{whole}.{fraction}{exponent}");
        let (envelope, chunk) = written(&number);
        prop_assert_eq!(decimal(&envelope), decimal(&number), "{} became {}", number, envelope);
        prop_assert_eq!(envelope, chunk);
    }

    /// The exception that the README states.
    #[test]
    fn longer_numbers_become_the_nearest_double(
        sign in "-?",
        whole in "[2-9][0-9]{19,40}",
        fraction in "|\\.[0-9]{1,40}",
    ) {
        let number = format!("{sign}{whole}{fraction}");
        let (envelope, chunk) = written(&number);
        let nearest: f64 = number.parse().expect("a number");
        prop_assert_eq!(envelope.parse::<f64>(), Ok(nearest));
        prop_assert_eq!(envelope, chunk);
    }
}

#[test]
fn spelling_of_fractions_is_normalised() {
    for (number, expected) in [
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("1.50", "1.5"),
        ("1e2", "100.0"),
        ("-0", "-0.0"),
        ("0.12345678901234567890", "0.12345678901234568"),
    ] {
        assert_eq!(written(number), (String::from(expected), String::from(expected)));
    }
}
