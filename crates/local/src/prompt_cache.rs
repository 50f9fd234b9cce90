//! The context of a model with the evaluated prompts of earlier calls. A prompt that begins with the same tokens as
//! an earlier one, as all runs of a module do, is evaluated from the first difference. The state of the latest prompt
//! is in the context; states of others are copies in memory, with a bound for their total size.
//!
//! Prompts are evaluated and reused in batches that begin at multiples of the batch size. A reused batch was therefore
//! computed from the same tokens in the same batch, and the answer is the same as without reuse.

use std::collections::VecDeque;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::session::{LlamaStateSeqFlags, SeqState};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::generate::{Interrupted, runtime_failed};
use crate::limits;

/// The only sequence of the context.
const SEQUENCE: i32 = 0;

#[derive(Debug)]
pub(crate) struct CachedContext<'a> {
    pub(crate) llama: LlamaContext<'a>,
    batch: LlamaBatch<'static>,
    /// The evaluated tokens of the latest prompt, in whole batches.
    prompt: Vec<LlamaToken>,
    /// Number of evaluated tokens, which is the position of the next.
    position: usize,
    /// Least recently used first.
    states: VecDeque<PromptState>,
}

/// The copied state of an evaluated prompt.
#[derive(Debug)]
struct PromptState {
    tokens: Vec<LlamaToken>,
    state: SeqState,
}

impl<'a> CachedContext<'a> {
    pub(crate) fn new(llama: LlamaContext<'a>) -> Self {
        Self {
            llama,
            batch: LlamaBatch::new(limits::BATCH_TOKENS, 1),
            prompt: Vec::new(),
            position: 0,
            states: VecDeque::new(),
        }
    }

    /// Prepares the context for a prompt and returns how many of its tokens are evaluated already. At least one is
    /// not, because the scores of the last are needed.
    pub(crate) fn begin(&mut self, prompt: &[LlamaToken]) -> usize {
        if reusable(&self.prompt, prompt) < self.prompt.len() / 2 {
            self.save();
        }
        let mut reused = reusable(&self.prompt, prompt);
        let states = self.states.iter().enumerate();
        let best = states
            .map(|(index, saved)| (reusable(&saved.tokens, prompt), index))
            .max();
        if let Some((length, index)) = best.filter(|(length, _)| *length > reused) {
            reused = if self.restore(index) { length } else { 0 };
        }
        if !self.truncate(reused) {
            self.clear();
            reused = 0;
        }
        reused
    }

    /// Evaluates a prompt from the position that [`Self::begin`] returned. Returns the batch index of the scores of
    /// the next token.
    pub(crate) fn evaluate_prompt(
        &mut self,
        prompt: &[LlamaToken],
        check: impl Fn() -> Result<(), Interrupted>,
    ) -> Result<i32, Interrupted> {
        let left = prompt.get(self.position..).unwrap_or_default();
        let mut last = 0;
        for part in left.chunks(limits::BATCH_TOKENS) {
            last = self.evaluate(part, &check)?;
            if part.len() == limits::BATCH_TOKENS {
                self.prompt.extend_from_slice(part);
            }
        }
        Ok(last)
    }

    /// Evaluates tokens in batches, with a check between them. Returns the batch index of the scores of the next
    /// token.
    pub(crate) fn evaluate(
        &mut self,
        tokens: &[LlamaToken],
        check: impl Fn() -> Result<(), Interrupted>,
    ) -> Result<i32, Interrupted> {
        for part in tokens.chunks(limits::BATCH_TOKENS) {
            check()?;
            self.batch.clear();
            for (index, token) in part.iter().enumerate() {
                let position =
                    i32::try_from(self.position + index).map_err(|error| runtime_failed(&error))?;
                let is_last = index + 1 == part.len();
                self.batch
                    .add(*token, position, &[SEQUENCE], is_last)
                    .map_err(|error| runtime_failed(&error))?;
            }
            if let Err(error) = self.llama.decode(&mut self.batch) {
                // The state after a failure is unknown.
                self.clear();
                return Err(runtime_failed(&error).into());
            }
            self.position += part.len();
        }
        Ok(self.batch.n_tokens() - 1)
    }

    /// Removes everything after the first `length` tokens. Fails if the model cannot remove a part of its state.
    fn truncate(&mut self, length: usize) -> bool {
        let Ok(from) = u32::try_from(length) else {
            return false;
        };
        let removed = self.llama.clear_kv_cache_seq(Some(0), Some(from), None);
        // Models with a sliding window may have dropped the first tokens.
        let is_whole = length == 0 || self.llama.kv_cache_seq_pos_min(SEQUENCE) == 0;
        self.prompt.truncate(length);
        self.position = length;
        is_whole && removed.is_ok_and(|removed| removed)
    }

    fn clear(&mut self) {
        self.llama.clear_kv_cache();
        self.prompt.clear();
        self.position = 0;
    }

    /// Replaces the context by a copied state, which becomes the most recently used.
    fn restore(&mut self, index: usize) -> bool {
        let Some(saved) = self.states.remove(index) else {
            return false;
        };
        if self.llama.state_seq_set(&saved.state, SEQUENCE).is_err() {
            self.clear();
            return false;
        }
        self.prompt.clone_from(&saved.tokens);
        self.position = saved.tokens.len();
        self.states.push_back(saved);
        true
    }

    /// Copies the state of the latest prompt, or as much of its beginning as the limit permits.
    fn save(&mut self) {
        let tokens = self.prompt.len();
        let is_saved = |saved: &PromptState| common(&saved.tokens, &self.prompt) == tokens;
        if tokens == 0 || self.states.iter().any(is_saved) || !self.truncate(tokens) {
            return;
        }
        let bytes = self
            .llama
            .state_seq_get_size_ext(SEQUENCE, LlamaStateSeqFlags::empty());
        if bytes > limits::PROMPT_STATE_BYTES_MAX {
            let fitting = limits::PROMPT_STATE_BYTES_MAX / bytes.div_ceil(tokens);
            let batches = fitting / limits::BATCH_TOKENS;
            if batches == 0 || !self.truncate(batches * limits::BATCH_TOKENS) {
                return;
            }
        }
        let Ok(state) = self.llama.state_seq_get(SEQUENCE, LlamaStateSeqFlags::empty()) else {
            return;
        };
        // One state per module is enough: another with the same beginning is replaced.
        let prompt = &self.prompt;
        self.states
            .retain(|saved| common(&saved.tokens, prompt) < saved.tokens.len() / 2);
        let mut total = state.byte_len();
        total += self
            .states
            .iter()
            .map(|saved| saved.state.byte_len())
            .sum::<usize>();
        while total > limits::PROMPT_STATES_BYTES_MAX
            && let Some(oldest) = self.states.pop_front()
        {
            total -= oldest.state.byte_len();
        }
        self.states.push_back(PromptState {
            tokens: prompt.clone(),
            state,
        });
    }
}

/// Number of equal tokens at the beginning.
fn common(a: &[LlamaToken], b: &[LlamaToken]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Number of tokens at the beginning of a prompt that need no evaluation.
fn reusable(evaluated: &[LlamaToken], prompt: &[LlamaToken]) -> usize {
    let equal = common(evaluated, prompt).min(prompt.len().saturating_sub(1));
    equal / limits::BATCH_TOKENS * limits::BATCH_TOKENS
}
