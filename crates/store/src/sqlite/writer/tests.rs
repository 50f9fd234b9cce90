//! The limit of the queue, with a writer thread that is stopped by a job.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::task::{Context, Waker};

use engine::port::RunKind;

use super::*;
use crate::sqlite::database::prepare;

fn create(writer: &Writer) -> Commit {
    writer.write(WriteOp::Create {
        tenant: Tenant::local(),
        run: NewRun {
            id: RunId::from_parts(1, 1),
            kind: RunKind::Relay,
            command: String::from("{}"),
            created_at_ms: 1,
            client: String::from("c"),
            once: None,
        },
    })
}

/// All of it runs on one thread: a call that blocked would stop the test.
#[tokio::test]
async fn full_queue_refuses_writes_of_runs_and_delays_rare_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    prepare(&path).unwrap();
    let writer = Writer::start(&path, Options::default()).unwrap();
    let (release, released) = channel::<()>();
    let (stopped, is_stopped) = oneshot::channel();
    let stop = move |_: &Connection| {
        stopped.send(()).ok();
        released.recv().ok();
    };
    writer.queue(stop).unwrap();
    is_stopped.await.unwrap();

    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..limits::WRITE_QUEUE_MAX {
        let done = done.clone();
        let count = move |_: &Connection| {
            done.fetch_add(1, Ordering::Relaxed);
        };
        writer.queue(count).unwrap();
    }
    let refused = writer.queue(|_| {});
    assert!(matches!(refused, Err(JournalError::Full)), "{refused:?}");
    let refused = create(&writer).await;
    assert!(matches!(refused, Err(JournalError::Full)), "{refused:?}");
    let mut rare = Box::pin(writer.run(|_| Ok(7)));
    assert!(
        rare.as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );

    release.send(()).unwrap();
    assert_eq!(rare.await.unwrap(), 7);
    assert_eq!(done.load(Ordering::Relaxed), limits::WRITE_QUEUE_MAX);
    // The refused run was not created, and its id is free.
    create(&writer).await.unwrap();
    writer.close().await;
    assert!(create(&writer).await.is_err());
}
