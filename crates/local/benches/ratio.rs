//! CPU cost of an answer of the embedded model, relative to the runtime's plain loop over the same prompt
//! and the same number of tokens, in the same process. Ours is the complete path: back-end, queue, thread,
//! schema, events.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run fails")]

#[path = "../../../bench/bench_main.rs"]
mod bench_main;
#[path = "../../../bench/figure.rs"]
mod figure;

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::sync::Arc;

use engine::port::Upstream;
use futures::StreamExt;
use ir::{ChatRequest, Event, Message, Request, ResponseFormat, Role};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::model::{LlamaChatMessage, LlamaModel};
use llama_cpp_2::sampling::LlamaSampler;
use local::{LocalUpstream, Options};
use serde_json::{Value, json};

const TOKENS: usize = 128;
const QUESTION: &str = "Write a long story about a ship, a storm and a harbour. Leave nothing out.";

fn main() {
    bench_main::main("ratio", measure_all);
}

fn measure_all() {
    let mut options = Options::new("embedded", "smollm2", testkit::language_model::small_model());
    options.context_tokens = 1024;
    let local = LocalUpstream::new(&options);
    let free = json!({"type": "object", "properties": {"story": {"type": "string", "minLength": 900}}, "required": ["story"]});
    let plain = Plain::load(&options);
    // Both are loaded before the measurement.
    ours(&local, &free);
    plain.write();
    let rows = [
        ("embedded model, 128 tokens under a schema", Some(&free)),
        ("embedded model, 128 tokens without a schema", None),
    ];
    for (name, schema) in rows {
        let measured = || match schema {
            Some(schema) => ours(&local, schema),
            None => ours(&local, &Value::Null),
        };
        figure::figure(name, "the runtime's plain loop", 1.15, measured, || plain.write());
    }
}

/// Reads [`TOKENS`] deltas and drops the stream.
fn ours(local: &LocalUpstream, schema: &Value) {
    let response_format = (!schema.is_null()).then(|| ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: schema.clone().into(),
        strict: None,
    });
    let chat = ChatRequest {
        messages: vec![Message::text(Role::User, QUESTION)],
        response_format,
        ..ChatRequest::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let events = local.stream(Arc::new(Request::chat("r", chat)));
    let texts = events.filter(|event| std::future::ready(matches!(event, Event::BlockDelta { .. })));
    let read = runtime.expect("a runtime").block_on(texts.take(TOKENS).count());
    assert_eq!(read, TOKENS, "the answer is long enough");
}

/// The loop of the runtime's examples: evaluate, sample greedily, repeat.
struct Plain {
    model: &'static LlamaModel,
    context: RefCell<LlamaContext<'static>>,
}

impl Plain {
    fn load(options: &Options) -> Self {
        let runtime = local::runtime().expect("a runtime");
        let model = LlamaModel::load_from_file(runtime, &options.path, &LlamaModelParams::default());
        // Lives for the whole process.
        let model: &'static LlamaModel = Box::leak(Box::new(model.expect("weights")));
        let threads = i32::try_from(options.threads).expect("few");
        let parameters = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(options.context_tokens))
            .with_n_threads(threads)
            .with_n_threads_batch(threads);
        let context = model.new_context(runtime, parameters).expect("a context");
        Self {
            model,
            context: RefCell::new(context),
        }
    }

    fn write(&self) {
        let template = self.model.chat_template(None).expect("a template");
        let message = LlamaChatMessage::new(String::from("user"), String::from(QUESTION)).expect("text");
        let prompt = self.model.apply_chat_template(&template, &[message], true);
        let prompt = self
            .model
            .vocab()
            .tokenize(prompt.expect("a prompt").as_bytes(), true, true);
        let mut context = self.context.borrow_mut();
        context.clear_kv_cache();
        let mut sampler = LlamaSampler::chain([LlamaSampler::greedy()], true);
        let mut batch = LlamaBatch::new(512, 1);
        batch.add_sequence(&prompt, 0, false).expect("room");
        context.decode(&mut batch).expect("evaluated");
        let mut text = Vec::new();
        for position in (i32::try_from(prompt.len()).expect("short")..).take(TOKENS) {
            let token = sampler.sample(&context, batch.n_tokens() - 1);
            text.extend(self.model.vocab().token_to_piece(token, false, None));
            batch.clear();
            batch.add(token, position, &[0], true).expect("room");
            context.decode(&mut batch).expect("evaluated");
        }
        assert!(!text.is_empty());
    }
}
