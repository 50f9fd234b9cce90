//! Sizes from an encoder's configuration. Sizes beyond those of small encoders are refused, because they
//! would only lead to excessive allocations.

use serde::Deserialize;
use serde_json::Value;

use crate::limits;

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct EncoderConfig {
    #[serde(rename = "hidden_size")]
    pub(super) width: usize,
    #[serde(rename = "intermediate_size")]
    pub(super) inner_width: usize,
    #[serde(rename = "num_attention_heads")]
    pub(super) heads: usize,
    #[serde(rename = "num_hidden_layers")]
    pub(super) layers: usize,
    #[serde(rename = "max_position_embeddings")]
    pub(super) positions: usize,
    #[serde(rename = "layer_norm_eps")]
    pub(super) epsilon: f32,
    hidden_act: String,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

impl EncoderConfig {
    pub(super) fn read(config: Value) -> Result<Self, String> {
        let shape: Self = serde_json::from_value(config).map_err(|error| error.to_string())?;
        let within = |value: usize, most: usize| (1..=most).contains(&value);
        let sane = within(shape.width, limits::WIDTH_MAX)
            && within(shape.inner_width, limits::WIDTH_MAX)
            && within(shape.layers, limits::LAYERS_MAX)
            && within(shape.positions, limits::POSITIONS_MAX)
            && within(shape.heads, shape.width)
            && shape.width.is_multiple_of(shape.heads);
        if !sane {
            return Err(String::from("its sizes are outside the supported range"));
        }
        if shape.hidden_act != "gelu" {
            return Err(format!("its activation is `{}`, not `gelu`", shape.hidden_act));
        }
        match shape.position_embedding_type.as_deref() {
            None | Some("absolute") => Ok(shape),
            Some(other) => Err(format!("its positions are `{other}`, not `absolute`")),
        }
    }

    pub(super) fn head_width(&self) -> usize {
        self.width / self.heads
    }
}
