//! Readers that disconnect during the start of a run, and readers of a run that another server executes.

use std::sync::Arc;

use engine::port::{Archive, EncodedEvent, EventKind, Journal, NewRun, RunEnd, RunFilter, RunKind};
use engine::{ReadFrom, RunMode, Settings, Tenant};
use ir::RunId;
use store::memory::MemoryJournal;
use testkit::manual_upstream::ManualUpstream;
use tokio::time::timeout;

use crate::faulty_journal::{FaultyJournal, LateWrite};
use crate::runs::{OPENING, SOON, engine, execute};

/// A run is journaled by its task, so that a caller that disconnects during the start leaves a run.
#[tokio::test]
async fn disconnect_during_the_start_cancels_a_run_without_stream_and_continues_a_stream() {
    for mode in [RunMode::Sync, RunMode::Stream] {
        let puppet = ManualUpstream::new("p");
        let journal = Arc::new(MemoryJournal::default());
        let engine = engine(journal.clone(), puppet.clone(), Settings::default());
        let tenant = Tenant::local();
        // Polled until the run is registered, then dropped.
        {
            let mut starting = Box::pin(engine.start(&tenant, execute(mode)));
            let registered = async {
                while engine.running() == 0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                _ = &mut starting => panic!("started before its caller left"),
                () = registered => {}
            }
        }
        if mode == RunMode::Stream {
            let strings = puppet.attempt().await;
            strings.text(&format!("{OPENING}r\"}}}}")).await;
            strings.finish().await;
        }
        timeout(SOON, engine.drain()).await.unwrap();
        let filter = RunFilter {
            state: None,
            before: None,
            limit: 10,
        };
        let runs = journal.list(&tenant, &filter).await.unwrap();
        let code = (mode == RunMode::Sync).then_some("E2010");
        assert_eq!(runs.len(), 1);
        let finished = runs[0].finished.as_ref().unwrap();
        assert_eq!(finished.code.as_deref(), code);
    }
}

#[tokio::test]
async fn events_that_another_server_writes_while_a_page_is_read_are_delivered() {
    let end = RunEnd::new(None, 2, Vec::new());
    for (kind, end) in [(EventKind::Meta, None), (EventKind::Final, Some(end))] {
        let journal = Arc::new(FaultyJournal::default());
        let engine = engine(journal.clone(), ManualUpstream::new("p"), Settings::default());
        let (tenant, run) = (Tenant::local(), RunId::from_parts(1, 1));
        let new = NewRun {
            id: run,
            kind: RunKind::Module(String::from("m")),
            command: String::from("{}"),
            created_at_ms: 1,
            client: String::from("c"),
            once: None,
        };
        journal.create(&tenant, &new).await.unwrap();
        let event = EncodedEvent {
            kind,
            seq: None,
            body: Arc::from("{}"),
        };
        *journal.late.lock().unwrap() = Some(LateWrite {
            event: event.clone(),
            end,
        });
        let mut reader = engine.subscribe(&tenant, run, ReadFrom::Start).await.unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(vec![event]));
    }
}
