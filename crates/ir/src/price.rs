//! Token prices known in advance, and the cost of an answer computed from them. Amounts are integers of small
//! units, so that sums are exact; the cost is unknown if any part of it is unknown.

use crate::decimal::Decimal;
use crate::usage::Usage;

/// Units per dollar in which a price per million tokens is stored.
const UNITS: f64 = 1e9;
/// Decimal places of the price of a single token: those of [`UNITS`] and those of a million.
const DIGITS: usize = 15;
const SCALE: u128 = 1_000_000_000_000_000;

/// Prices per million tokens, in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    input: Option<u64>,
    cached_input: Option<u64>,
    output: Option<u64>,
}

impl Price {
    /// In US dollars per million tokens. Tokens read from a cache have a separate price.
    pub fn per_million(input: Option<f64>, cached_input: Option<f64>, output: Option<f64>) -> Self {
        Self {
            input: input.and_then(units),
            cached_input: cached_input.and_then(units),
            output: output.and_then(units),
        }
    }

    /// The price of a million input and a million output tokens, in dollars, for comparing back-ends.
    pub fn together_usd(&self) -> Option<f64> {
        let sum = self.input.unwrap_or(0) + self.output.unwrap_or(0);
        (self.input.is_some() || self.output.is_some()).then_some(sum as f64 / UNITS)
    }

    /// The cost of `usage`. `None` if a count or its price is missing, for estimates, and for tokens
    /// written to a cache, which have other prices.
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

/// Zero tokens cost zero, even without a price.
fn amount(tokens: u64, price: Option<u64>) -> Option<u128> {
    match tokens {
        0 => Some(0),
        _ => Some(u128::from(tokens) * u128::from(price?)),
    }
}

/// Without trailing zeros.
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
    fn cost_is_exact() {
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
        assert_eq!(cost(dear, &cached), None, "no cache price");
    }

    #[test]
    fn unknown_counts_or_prices_have_no_cost() {
        let price = Price::per_million(Some(1.0), None, None);
        assert_eq!(cost(price, &used(1, 1)), None, "no output price");
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
