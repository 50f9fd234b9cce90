//! What tokens cost where it is known beforehand, and what an answer cost by that. Amounts are whole numbers of
//! small units, so that sums are exact; what is not known of any part of an answer is not known of the whole.

use crate::decimal::Decimal;
use crate::usage::Usage;

/// Parts of a dollar that a price of a million tokens is kept in.
const UNITS: f64 = 1e9;
/// Digits behind the point of a single token's price: those of [`UNITS`] and those of a million.
const DIGITS: usize = 15;
const SCALE: u128 = 1_000_000_000_000_000;

/// What a million tokens cost, in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    input: Option<u64>,
    cached_input: Option<u64>,
    output: Option<u64>,
}

impl Price {
    /// In US dollars for a million tokens. Tokens that were read from a cache have a price of their own.
    pub fn per_million(input: Option<f64>, cached_input: Option<f64>, output: Option<f64>) -> Self {
        Self {
            input: input.and_then(units),
            cached_input: cached_input.and_then(units),
            output: output.and_then(units),
        }
    }

    /// A million tokens in and a million out, in dollars: to compare, not to bill.
    pub fn together_usd(&self) -> Option<f64> {
        let sum = self.input.unwrap_or(0) + self.output.unwrap_or(0);
        (self.input.is_some() || self.output.is_some()).then_some(sum as f64 / UNITS)
    }

    /// What was used at this price. `None` where a count or the price of what was counted is missing, for
    /// guesses, and for what was written to a cache, which has other prices.
    pub fn of(&self, usage: &Usage) -> Option<Decimal> {
        if usage.estimated || usage.cache_write_tokens.is_some_and(|count| count > 0) {
            return None;
        }
        let cached = usage.cache_read_tokens.unwrap_or(0);
        let fresh = usage.input_tokens?.checked_sub(cached)?;
        let parts = [
            amount(fresh, self.input)?,
            amount(cached, self.cached_input)?,
            amount(usage.output_tokens?, self.output)?,
        ];
        decimal(parts.into_iter().sum())
    }
}

fn units(dollars: f64) -> Option<u64> {
    let units = (dollars * UNITS).round();
    (0.0..1e18).contains(&units).then_some(units as u64)
}

/// Nothing costs nothing, whatever its price.
fn amount(tokens: u64, price: Option<u64>) -> Option<u128> {
    match tokens {
        0 => Some(0),
        _ => Some(u128::from(tokens) * u128::from(price?)),
    }
}

/// Without zeros at its end.
fn decimal(amount: u128) -> Option<Decimal> {
    let text = format!("{}.{:0DIGITS$}", amount / SCALE, amount % SCALE);
    text.trim_end_matches('0').trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, output: u64) -> Usage {
        Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            ..Usage::default()
        }
    }

    fn cost(price: Price, usage: &Usage) -> Option<String> {
        price.of(usage).map(|cost| cost.to_string())
    }

    #[test]
    fn an_amount_is_exact() {
        let price = Price::per_million(Some(0.15), Some(0.075), Some(0.6));
        assert_eq!(cost(price, &used(7, 3)).as_deref(), Some("0.00000285"));
        assert_eq!(cost(price, &used(1_000_000, 1_000_000)).as_deref(), Some("0.75"));
        assert_eq!(cost(price, &used(0, 0)).as_deref(), Some("0"));
        let dear = Price::per_million(Some(75.0), None, Some(150.0));
        assert_eq!(cost(dear, &used(2_000_000, 1_000_000)).as_deref(), Some("300"));
        let cached = Usage {
            cache_read_tokens: Some(4),
            ..used(10, 1)
        };
        assert_eq!(cost(price, &cached).as_deref(), Some("0.0000018"));
        assert_eq!(cost(dear, &cached), None, "what a cache costs is not known");
    }

    #[test]
    fn what_is_not_known_has_no_price() {
        let price = Price::per_million(Some(1.0), None, None);
        assert_eq!(cost(price, &used(1, 1)), None, "no price for what was written");
        assert_eq!(cost(price, &used(1, 0)).as_deref(), Some("0.000001"));
        assert_eq!(cost(price, &Usage::default()), None);
        let guess = Usage {
            estimated: true,
            ..used(1, 0)
        };
        assert_eq!(cost(price, &guess), None);
        let written = Usage {
            cache_write_tokens: Some(1),
            ..used(1, 0)
        };
        assert_eq!(cost(price, &written), None);
        assert_eq!(
            Price::per_million(Some(-1.0), None, Some(f64::NAN)),
            Price::default()
        );
        assert_eq!(Price::default().together_usd(), None);
        assert_eq!(
            Price::per_million(Some(0.25), None, Some(1.0)).together_usd(),
            Some(1.25)
        );
    }
}
