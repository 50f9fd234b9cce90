//! Loaded weights: vocabulary, chat template, and grammar compiler. Everything computed once per model is
//! computed here.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ir::{Error, ErrorKind, Phase};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::model::{LlamaChatTemplate, LlamaModel};
use llama_cpp_2::token::LlamaToken;

use crate::grammar::Grammars;
use crate::weights::check_weights;
use crate::{Options, limits, processor};

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) llama: Arc<LlamaModel>,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) grammars: Grammars,
}

impl Model {
    pub(crate) fn load(options: &Options) -> Result<Self, Error> {
        let llama = Arc::new(open(&options.path, false)?);
        Ok(Self {
            name: options.model.clone(),
            grammars: Grammars::new(&llama),
            tokenizer: Tokenizer::of(llama.clone())?,
            llama,
        })
    }

    /// A context for one conversation with the model.
    pub(crate) fn context(&self, options: &Options) -> Result<LlamaContext<'_>, Error> {
        let trained = self.llama.n_ctx_train().max(1);
        let tokens = options
            .context_tokens
            .clamp(1, limits::CONTEXT_TOKENS_MAX)
            .min(trained);
        let threads = i32::try_from(options.threads.max(1)).unwrap_or(1);
        let batch = u32::try_from(limits::BATCH_TOKENS).unwrap_or(1);
        let parameters = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(tokens))
            .with_n_batch(batch)
            .with_n_ubatch(batch)
            .with_n_threads(threads)
            .with_n_threads_batch(threads)
            .with_no_perf(true);
        self.llama
            .new_context(runtime()?, parameters)
            .map_err(|error| not_enabled(format!("cannot allocate a context of {tokens} tokens: {error}")))
    }

    pub(crate) fn bytes(&self, token: LlamaToken) -> Vec<u8> {
        self.llama.vocab().token_to_piece(token, false, None)
    }
}

/// Vocabulary and chat template of a file, which turn messages into tokens.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    pub(crate) llama: Arc<LlamaModel>,
    /// From the file, or the fallback template.
    pub(crate) template: LlamaChatTemplate,
    /// Whether the file has no chat template.
    pub(crate) template_is_ours: bool,
}

impl Tokenizer {
    /// Without the weights, for counting tokens.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        Self::of(Arc::new(open(path, true)?))
    }

    fn of(llama: Arc<LlamaModel>) -> Result<Self, Error> {
        let own = llama
            .chat_template(None)
            .ok()
            .filter(|template| template.as_c_str().to_bytes().len() <= limits::TEMPLATE_BYTES_MAX);
        let template_is_ours = own.is_none();
        let template = match own {
            Some(template) => template,
            None => plain_template()?,
        };
        Ok(Self {
            llama,
            template,
            template_is_ours,
        })
    }

    pub(crate) fn tokenize(&self, text: &str, is_start: bool, is_template: bool) -> Vec<LlamaToken> {
        self.llama
            .vocab()
            .tokenize(text.as_bytes(), is_start, is_template)
    }

    pub(crate) fn count(&self, text: &str) -> usize {
        self.tokenize(text, false, false).len()
    }
}

/// The fallback template, which most models without a template support.
pub(crate) fn plain_template() -> Result<LlamaChatTemplate, Error> {
    LlamaChatTemplate::new("chatml").map_err(|error| not_enabled(error.to_string()))
}

fn open(path: &Path, vocabulary_only: bool) -> Result<LlamaModel, Error> {
    check_weights(path).map_err(|error| {
        let message = format!("{error}; run `cogn models pull` to download weights");
        Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message)
    })?;
    let parameters = LlamaModelParams::default().with_vocab_only(vocabulary_only);
    LlamaModel::load_from_file(runtime()?, path, &parameters).map_err(|_| {
        let message = format!(
            "cannot load the weights {}: the file is damaged or not supported by this runtime",
            path.display()
        );
        Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message)
    })
}

/// The runtime, initialised once per process. Public for benchmarks, which compare with its plain loop.
///
/// # Errors
/// If the runtime was initialised elsewhere in this process, or was compiled for another processor.
pub fn runtime() -> Result<&'static LlamaBackend, Error> {
    let missing = processor::missing();
    if !missing.is_empty() {
        return Err(not_enabled(format!(
            "this processor lacks {}, which this build of the embedded model needs; build cogn on this machine",
            missing.join(", ")
        )));
    }
    static RUNTIME: OnceLock<Option<LlamaBackend>> = OnceLock::new();
    let start = || {
        let mut backend = LlamaBackend::init().ok()?;
        // Otherwise it writes to stderr, the operator's terminal.
        backend.void_logs();
        Some(backend)
    };
    RUNTIME.get_or_init(start).as_ref().ok_or_else(|| {
        not_enabled(String::from(
            "the native runtime was already initialised elsewhere in this process",
        ))
    })
}

fn not_enabled(message: String) -> Error {
    Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message)
}
