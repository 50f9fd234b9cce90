//! The forward pass. The texts of a batch are concatenated in one matrix, so that the large products run
//! over all of them at once; only attention is computed per text.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, Axis, Slice};

use super::config::EncoderConfig;
use super::model::{Dense, Layer, Model, Norm};

impl Model {
    /// The tokens of a text, including start and end tokens.
    pub(super) fn tokens(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoded = self.tokenizer.encode_fast(text, true);
        let encoded = encoded.map_err(|error| error.to_string())?;
        Ok(encoded.get_ids().to_vec())
    }

    /// One normalised vector per text. No text may have more tokens than there are positions.
    pub(super) fn encode(&self, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
        let mut spans = Vec::with_capacity(texts.len());
        let mut rows = 0;
        for text in texts {
            spans.push(rows..rows + text.len());
            rows += text.len();
        }
        let mut states = self.embedded(texts, rows);
        for layer in &self.layers {
            states = layer.forward(&states, &spans, &self.shape);
        }
        let all = 0..self.shape.width;
        let texts = spans.iter();
        texts.map(|span| pooled(&part(&states, span, &all))).collect()
    }

    fn embedded(&self, texts: &[Vec<u32>], rows: usize) -> Array2<f32> {
        let mut states = Array2::zeros((rows, self.shape.width));
        let tokens = texts.iter().flat_map(|text| text.iter().enumerate());
        for (mut state, (position, token)) in states.outer_iter_mut().zip(tokens) {
            let word = usize::try_from(*token).unwrap_or(usize::MAX);
            // The vocabulary size was checked against the table when the model was loaded.
            if word < self.words.nrows() && position < self.positions.nrows() {
                state += &self.words.row(word);
                state += &self.positions.row(position);
            }
            state += &self.kind;
        }
        self.norm.apply(&mut states, self.shape.epsilon);
        states
    }
}

impl Layer {
    fn forward(&self, states: &Array2<f32>, spans: &[Range<usize>], shape: &EncoderConfig) -> Array2<f32> {
        let query = self.query.apply(states);
        let key = self.key.apply(states);
        let value = self.value.apply(states);
        let mut seen = Array2::zeros(states.raw_dim());
        for span in spans {
            for head in 0..shape.heads {
                let columns = head * shape.head_width()..(head + 1) * shape.head_width();
                let attended = attention(
                    &part(&query, span, &columns),
                    &part(&key, span, &columns),
                    &part(&value, span, &columns),
                );
                let mut place = seen.view_mut();
                place.slice_axis_inplace(Axis(0), Slice::from(span.clone()));
                place.slice_axis_inplace(Axis(1), Slice::from(columns));
                place.assign(&attended);
            }
        }
        let mut mixed = self.mix.apply(&seen);
        mixed += states;
        self.mix_norm.apply(&mut mixed, shape.epsilon);
        let mut wide = self.widen.apply(&mixed);
        wide.mapv_inplace(gelu);
        let mut narrow = self.narrow.apply(&wide);
        narrow += &mixed;
        self.norm.apply(&mut narrow, shape.epsilon);
        narrow
    }
}

impl Dense {
    fn apply(&self, states: &Array2<f32>) -> Array2<f32> {
        let shape = (states.nrows(), self.weight.nrows());
        let mut result = Array2::zeros(shape);
        for mut row in result.outer_iter_mut() {
            row.assign(&self.bias);
        }
        general_mat_mul(1.0, states, &self.weight.t(), 1.0, &mut result);
        result
    }
}

impl Norm {
    fn apply(&self, states: &mut Array2<f32>, epsilon: f32) {
        for mut row in states.outer_iter_mut() {
            let mean = row.mean().unwrap_or_default();
            row -= mean;
            let variance = row.dot(&row) / count(row.len());
            row /= (variance + epsilon).sqrt();
            row *= &self.weight;
            row += &self.bias;
        }
    }
}

fn part<'a>(states: &'a Array2<f32>, rows: &Range<usize>, columns: &Range<usize>) -> ArrayView2<'a, f32> {
    let mut part = states.view();
    part.slice_axis_inplace(Axis(0), Slice::from(rows.clone()));
    part.slice_axis_inplace(Axis(1), Slice::from(columns.clone()));
    part
}

fn attention(
    query: &ArrayView2<'_, f32>,
    key: &ArrayView2<'_, f32>,
    value: &ArrayView2<'_, f32>,
) -> Array2<f32> {
    let mut weights = query.dot(&key.t());
    weights /= count(query.ncols()).sqrt();
    weights.outer_iter_mut().for_each(softmax);
    weights.dot(value)
}

fn softmax(mut row: ArrayViewMut1<'_, f32>) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.mapv_inplace(|weight| (weight - most).exp());
    let sum = row.sum();
    row /= sum;
}

/// The mean over all tokens, normalised to length one.
fn pooled(states: &ArrayView2<'_, f32>) -> Vec<f32> {
    let mean = states.mean_axis(Axis(0));
    let mut mean = mean.unwrap_or_else(|| Array1::zeros(states.ncols()));
    let length = mean.dot(&mean).sqrt();
    if length > 0.0 {
        mean /= length;
    }
    mean.to_vec()
}

fn gelu(x: f32) -> f32 {
    let x = f64::from(x);
    narrowed(0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)))
}

/// The error function with an error below 1.2e-7: a Chebyshev fit of its complement (Numerical Recipes, 6.2).
fn erf(x: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let fit = FIT.iter().rev().fold(0.0, |sum, part| sum * t + part);
    let complement = t * (-x * x + fit).exp();
    match x < 0.0 {
        true => complement - 1.0,
        false => 1.0 - complement,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the weights have 32 bits too")]
fn narrowed(x: f64) -> f32 {
    x as f32
}

/// Counts here are widths and lengths, which are exact as a float.
fn count(count: usize) -> f32 {
    f32::from(u16::try_from(count).unwrap_or(u16::MAX))
}
