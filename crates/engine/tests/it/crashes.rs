//! Runs that end their server, and runs whose task panics.

use std::sync::Arc;

use engine::port::{
    Backend, EventStream, Journal, RawRequest, RawStream, RunState, UnaryResponse, Upstream,
    unsupported_operation,
};
use engine::{Permit, RunMode, Settings, Tenant};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use store::memory::MemoryJournal;
use testkit::manual_upstream::ManualUpstream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::runs::{OPENING, SOON, assemble, engine, execute, rest, start};

/// Each server is gone before the run has ended, as if the run had ended it.
#[tokio::test]
async fn run_is_recovered_twice_and_then_closed() {
    let journal = Arc::new(MemoryJournal::default());
    let mut calls = 0;
    let mut run = None;
    for server in 0..4 {
        let puppet = ManualUpstream::new("p");
        let engine = engine(journal.clone(), puppet.clone(), Settings::default());
        match run {
            None => run = Some(start(&engine, RunMode::Stream).await.0),
            Some(_) => engine.recover().await.unwrap(),
        }
        if server < 3 {
            puppet.attempt().await;
            calls += 1;
        }
        engine.stop().await;
    }
    assert_eq!(calls, 3);
    let row = journal
        .find(&Tenant::local(), run.unwrap())
        .await
        .unwrap()
        .unwrap();
    let code = row.finished.and_then(|finished| finished.code);
    assert_eq!((row.state, code.as_deref()), (RunState::Failed, Some("E2010")));
    assert!(journal.unfinished().await.unwrap().is_empty());
}

/// A back-end that panics, before or after it has been polled.
#[derive(Debug)]
struct PanickingUpstream(Backend, bool);

impl Upstream for PanickingUpstream {
    fn backend(&self) -> &Backend {
        &self.0
    }

    fn stream(&self, _: Arc<ir::Request>) -> EventStream {
        assert!(self.1, "a bug in a back-end");
        let text = ir::Event::text(0, OPENING);
        let block = ir::Event::BlockStart {
            index: 0,
            block: ir::Block::Text,
        };
        let bug = futures::stream::once(async { panic!("a bug in a stream") });
        futures::stream::iter([block, text]).chain(bug).boxed()
    }

    fn stream_raw(&self, _: &Arc<ir::Request>, _: &Arc<RawRequest>) -> Option<RawStream> {
        None
    }

    fn call(&self, request: Arc<ir::Request>) -> BoxFuture<'static, Result<UnaryResponse, ir::Error>> {
        std::future::ready(Err(unsupported_operation(&self.0, &request))).boxed()
    }

    fn supports_patches(&self) -> bool {
        false
    }

    fn count_request(&self, _: Arc<ir::Request>) -> BoxFuture<'static, Option<u64>> {
        std::future::ready(None).boxed()
    }

    fn count_tokens(&self, _: &str) -> Option<usize> {
        None
    }
}

#[tokio::test]
async fn panicking_run_ends_for_its_readers_and_frees_its_slot() {
    for streams in [false, true] {
        let backend = Backend {
            name: String::from("b"),
            kind: String::from("test"),
            model: None,
        };
        let journal = Arc::new(MemoryJournal::default());
        let settings = Settings {
            runs_max: 1,
            ..Settings::default()
        };
        let upstream = Arc::new(PanickingUpstream(backend, streams));
        let engine = engine(journal.clone(), upstream, settings);
        // One after the other: each needs the only slot.
        for _ in 0..3 {
            let (slot, freed) = oneshot::channel::<()>();
            let mut request = execute(RunMode::Stream);
            request.admission.permit = Some(Permit::new(slot));
            let started = engine.start(&Tenant::local(), request).await.unwrap();
            let events = rest(started.subscription).await;
            assert_eq!(assemble(&events).envelope["error"]["code"], "E4000");
            assert!(
                timeout(SOON, freed).await.unwrap().is_err(),
                "the permit was dropped"
            );
            let row = journal.find(&Tenant::local(), started.id).await.unwrap().unwrap();
            assert_eq!(row.state, RunState::Failed);
        }
        timeout(SOON, engine.drain()).await.unwrap();
    }
}
