//! From a JSON schema to the set of allowed next tokens. If the grammar engine does not support part of a
//! schema, the rest is enforced and the unsupported part is reported: nothing is dropped silently.

use std::fmt;
use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokTrie, TokenId, TokenizerEnv};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value, json};

use crate::{limits, schema_narrowing};

/// Compiles grammars for one vocabulary.
pub(crate) struct Grammars {
    /// `None` if the grammar engine does not support the vocabulary.
    factory: Option<ParserFactory>,
}

/// A schema under enforcement.
pub(crate) struct SchemaMatcher {
    pub(crate) matcher: Matcher,
    /// The part of the schema that is not enforced.
    pub(crate) notice: Option<String>,
}

impl Grammars {
    pub(crate) fn new(llama: &Arc<LlamaModel>) -> Self {
        let environment: TokEnv = Arc::new(Vocabulary::new(llama));
        let capabilities = InferenceCapabilities {
            ff_tokens: true,
            ..InferenceCapabilities::default()
        };
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&environment, capabilities, &slices).ok();
        if let Some(factory) = &mut factory {
            // Otherwise it writes to stderr.
            factory.quiet();
        }
        Self { factory }
    }

    /// The grammar of a schema. `Err` is the reason why none of it can be enforced.
    pub(crate) fn compile(&self, schema: &Value) -> Result<SchemaMatcher, String> {
        let factory = self
            .factory
            .as_ref()
            .ok_or("the grammar engine does not support the model's vocabulary")?;
        let length = schema.to_string().len();
        if length > limits::SCHEMA_BYTES_MAX {
            return Err(format!("the schema is too large: {length} bytes"));
        }
        let narrowed = schema_narrowing::narrow(schema).ok_or("the schema is nested too deeply")?;
        // The narrowed schema may exceed the engine's limits where the original does not.
        let mut refusal = String::new();
        for candidate in [&narrowed, schema] {
            match matcher(factory, candidate, false) {
                Ok(matcher) => {
                    return Ok(SchemaMatcher {
                        matcher,
                        notice: None,
                    });
                }
                Err(reason) => refusal = reason,
            }
        }
        for candidate in [&narrowed, schema] {
            if let Ok(matcher) = matcher(factory, candidate, true) {
                let notice = Some(format!("enforced except for unsupported keywords: {refusal}"));
                return Ok(SchemaMatcher { matcher, notice });
            }
        }
        Err(refusal)
    }
}

impl fmt::Debug for Grammars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammars")
            .field("usable", &self.factory.is_some())
            .finish()
    }
}

/// `lenient` leaves out unsupported keywords instead of refusing the schema.
fn matcher(factory: &ParserFactory, schema: &Value, lenient: bool) -> Result<Matcher, String> {
    let mut schema = match schema {
        Value::Object(map) => map.clone(),
        Value::Bool(true) => Map::new(),
        _ => return Err(String::from("the schema is not an object")),
    };
    // A single layout of the document leaves fewer choices to sample and fewer tokens to compute.
    let style = json!({
        "whitespace_flexible": false,
        "item_separator": ", ",
        "key_separator": ": ",
        "lenient": lenient,
    });
    schema.insert(String::from("x-guidance"), style);
    let grammar = TopLevelGrammar::from_json_schema(Value::Object(schema));
    let parser = factory
        .create_parser(grammar)
        .map_err(|error| first_line(&error))?;
    let mut matcher = Matcher::new(Ok(parser));
    match matcher.compute_mask() {
        Ok(mask) if !mask.is_zero() => Ok(matcher),
        Ok(_) => Err(String::from("no value matches the schema")),
        Err(error) => Err(first_line(&error)),
    }
}

/// The first line of an error; some errors include a trace.
fn first_line(error: &dyn fmt::Display) -> String {
    const CHARS_MAX: usize = 200;
    let text = error.to_string();
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(CHARS_MAX)
        .collect()
}

/// The model's vocabulary for the grammar engine.
struct Vocabulary {
    trie: TokTrie,
    llama: Arc<LlamaModel>,
    /// Whether tokenisation does not depend on the position in the text. Only then may forced text be
    /// inserted as tokens; SentencePiece prepends a space to its input.
    canonical: bool,
}

impl Vocabulary {
    fn new(llama: &Arc<LlamaModel>) -> Self {
        let environment = LlamaSampler::llguidance_tok_env(llama);
        let kind = llama.meta_val_str("tokenizer.ggml.model");
        Self {
            trie: environment.tok_trie().clone(),
            llama: llama.clone(),
            canonical: kind.is_ok_and(|kind| kind == "gpt2"),
        }
    }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let tokens = match std::str::from_utf8(bytes) {
            Ok(_) if self.canonical => self.llama.vocab().tokenize(bytes, false, false),
            // An incomplete character has no canonical tokenisation.
            _ => return self.trie.greedy_tokenize(bytes),
        };
        tokens
            .into_iter()
            .map(|LlamaToken(id)| id.cast_unsigned())
            .collect()
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.canonical
    }
}
