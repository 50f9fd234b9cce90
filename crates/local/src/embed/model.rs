//! A loaded encoder: the tensors of its file by name, each with the shape given in the configuration, and its
//! tokenizer.

use ndarray::{Array1, Array2};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use tokenizers::Tokenizer;

use super::config::EncoderConfig;
use super::files::{EncoderFiles, read_bounded, read_json};
use crate::limits;

#[derive(Debug)]
pub(super) struct Model {
    pub(super) shape: EncoderConfig,
    pub(super) tokenizer: Tokenizer,
    pub(super) words: Array2<f32>,
    pub(super) positions: Array2<f32>,
    /// The embedding of token type 0, the only one used.
    pub(super) kind: Array1<f32>,
    pub(super) norm: Norm,
    pub(super) layers: Vec<Layer>,
}

#[derive(Debug)]
pub(super) struct Layer {
    pub(super) query: Dense,
    pub(super) key: Dense,
    pub(super) value: Dense,
    pub(super) mix: Dense,
    pub(super) mix_norm: Norm,
    pub(super) widen: Dense,
    pub(super) narrow: Dense,
    pub(super) norm: Norm,
}

/// Rows of the weight are outputs, as in the file.
#[derive(Debug)]
pub(super) struct Dense {
    pub(super) weight: Array2<f32>,
    pub(super) bias: Array1<f32>,
}

#[derive(Debug)]
pub(super) struct Norm {
    pub(super) weight: Array1<f32>,
    pub(super) bias: Array1<f32>,
}

impl Model {
    pub(super) fn load(files: &EncoderFiles) -> Result<Self, String> {
        files.check().map_err(|error| error.to_string())?;
        let config = read_json(&files.config).map_err(|error| error.to_string())?;
        let shape = EncoderConfig::read(config)?;
        let tokenizer = read_bounded(&files.tokenizer, limits::TOKENIZER_BYTES_MAX);
        let tokenizer = tokenizer.map_err(|error| error.to_string())?;
        let mut tokenizer =
            Tokenizer::from_bytes(tokenizer).map_err(|error| format!("invalid tokenizer: {error}"))?;
        // Truncation and padding of the file are meant for training; texts that are too long are refused
        // instead.
        tokenizer.with_padding(None);
        let uncut = tokenizer.with_truncation(None).map(drop);
        uncut.map_err(|error| format!("invalid tokenizer: {error}"))?;
        let bytes = read_bounded(&files.weights, limits::ENCODER_BYTES_MAX);
        let bytes = bytes.map_err(|error| error.to_string())?;
        let tensors =
            SafeTensors::deserialize(&bytes).map_err(|error| format!("invalid weights: {error}"))?;
        let tensors = Tensors(&tensors);
        let words = tensors.table("embeddings.word_embeddings.weight", shape.width)?;
        if tokenizer.get_vocab_size(true) > words.nrows() {
            return Err(String::from(
                "the tokenizer vocabulary exceeds the embedding table",
            ));
        }
        let positions = tensors.table("embeddings.position_embeddings.weight", shape.width)?;
        if positions.nrows() < shape.positions {
            return Err(String::from("the position table is smaller than configured"));
        }
        let kinds = tensors.table("embeddings.token_type_embeddings.weight", shape.width)?;
        let kind = kinds.outer_iter().next().map(|row| row.to_owned());
        Ok(Self {
            words,
            positions,
            kind: kind.ok_or("the token type table is empty")?,
            norm: tensors.norm("embeddings.LayerNorm", shape.width)?,
            layers: (0..shape.layers)
                .map(|layer| tensors.layer(layer, &shape))
                .collect::<Result<_, _>>()?,
            shape,
            tokenizer,
        })
    }
}

struct Tensors<'a>(&'a SafeTensors<'a>);

impl Tensors<'_> {
    fn layer(&self, layer: usize, shape: &EncoderConfig) -> Result<Layer, String> {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let (width, inner) = (shape.width, shape.inner_width);
        Ok(Layer {
            query: self.dense(&name("attention.self.query"), width, width)?,
            key: self.dense(&name("attention.self.key"), width, width)?,
            value: self.dense(&name("attention.self.value"), width, width)?,
            mix: self.dense(&name("attention.output.dense"), width, width)?,
            mix_norm: self.norm(&name("attention.output.LayerNorm"), width)?,
            widen: self.dense(&name("intermediate.dense"), inner, width)?,
            narrow: self.dense(&name("output.dense"), width, inner)?,
            norm: self.norm(&name("output.LayerNorm"), width)?,
        })
    }

    fn dense(&self, name: &str, out: usize, width: usize) -> Result<Dense, String> {
        let weight = self.table(&format!("{name}.weight"), width)?;
        match weight.nrows() == out {
            true => Ok(Dense {
                weight,
                bias: self.row(&format!("{name}.bias"), out)?,
            }),
            false => Err(format!("tensor `{name}` has an unexpected shape")),
        }
    }

    fn norm(&self, name: &str, width: usize) -> Result<Norm, String> {
        Ok(Norm {
            weight: self.row(&format!("{name}.weight"), width)?,
            bias: self.row(&format!("{name}.bias"), width)?,
        })
    }

    fn row(&self, name: &str, width: usize) -> Result<Array1<f32>, String> {
        let (shape, numbers) = self.numbers(name)?;
        match shape == [width] {
            true => Ok(Array1::from_vec(numbers)),
            false => Err(format!("tensor `{name}` has an unexpected shape")),
        }
    }

    fn table(&self, name: &str, width: usize) -> Result<Array2<f32>, String> {
        let (shape, numbers) = self.numbers(name)?;
        let strange = || format!("tensor `{name}` has an unexpected shape");
        match shape.as_slice() {
            [rows, columns] if *columns == width => {
                Array2::from_shape_vec((*rows, width), numbers).map_err(|_| strange())
            }
            _ => Err(strange()),
        }
    }

    fn numbers(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>), String> {
        let tensor = self.0.tensor(name);
        // Some files prefix tensor names with the model name.
        let tensor = tensor.or_else(|_| self.0.tensor(&format!("bert.{name}")));
        let tensor = tensor.map_err(|_| format!("no tensor `{name}`"))?;
        if tensor.dtype() != Dtype::F32 {
            return Err(format!("tensor `{name}` does not contain 32-bit floats"));
        }
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let numbers = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes));
        Ok((tensor.shape().to_vec(), numbers.collect()))
    }
}
