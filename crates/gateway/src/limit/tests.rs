use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures::FutureExt;
use proptest::prelude::*;
use tenancy::Caller;

use super::{Capacity, Limiter, RunPermit};

fn caller(name: &str) -> Caller {
    Caller {
        client: String::from(name),
        ..Caller::local()
    }
}

fn limiter(runs_max: usize, queue_max: usize) -> Arc<Limiter> {
    patient(runs_max, queue_max, Duration::from_secs(600))
}

fn patient(runs_max: usize, queue_max: usize, queue_wait: Duration) -> Arc<Limiter> {
    Arc::new(Limiter::new(Capacity {
        runs_max,
        queue_max,
        queue_wait,
    }))
}

/// A request that is pending until it is admitted, refused, or dropped.
fn ask(
    limiter: &Arc<Limiter>,
    name: &str,
) -> std::pin::Pin<Box<dyn Future<Output = Result<RunPermit, StatusCode>>>> {
    let (limiter, caller) = (limiter.clone(), caller(name));
    let asking = async move {
        let turn = limiter.acquire(&caller).await;
        turn.map_err(|refusal| refusal.into_response().status())
    };
    asking.boxed_local()
}

#[tokio::test]
async fn queue_is_fair_between_clients() {
    let limiter = limiter(2, 10);
    let mut held: Vec<RunPermit> = Vec::new();
    for _ in 0..2 {
        held.push(ask(&limiter, "greedy").await.unwrap());
    }
    let mut pile: Vec<_> = (0..10).map(|_| ask(&limiter, "greedy")).collect();
    for waiting in &mut pile {
        assert!(waiting.now_or_never().is_none());
    }
    let mut modest = ask(&limiter, "modest");
    assert!((&mut modest).now_or_never().is_none());
    held.pop();
    assert!(modest.await.is_ok(), "the next permit goes to another client");
    // One of the queued requests was evicted and got its error at once.
    let gone = pile.iter_mut().filter_map(|waiting| waiting.now_or_never());
    let gone: Vec<_> = gone.collect();
    assert!(
        gone.iter()
            .any(|result| matches!(result, Err(StatusCode::SERVICE_UNAVAILABLE))),
        "{gone:?}"
    );
}

#[tokio::test]
async fn queue_wait_times_out() {
    let limiter = patient(1, 10, Duration::from_millis(5));
    let _held = ask(&limiter, "a").await.unwrap();
    assert_eq!(
        ask(&limiter, "b").await.unwrap_err(),
        StatusCode::SERVICE_UNAVAILABLE
    );
}

#[tokio::test]
async fn overload_error_has_retry_after() {
    let limiter = limiter(1, 0);
    let _held = ask(&limiter, "a").await.unwrap();
    let refusal = limiter.acquire(&caller("b")).await.unwrap_err().into_response();
    assert_eq!(refusal.status(), StatusCode::SERVICE_UNAVAILABLE);
    let seconds: u64 = refusal.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn limits_concurrent_runs_per_key() {
    let limiter = limiter(10, 10);
    let mut two = caller("two");
    two.concurrency = Some(2);
    let _first = limiter.acquire(&two).await.unwrap();
    let second = limiter.acquire(&two).await.unwrap();
    let refused = limiter.acquire(&two).await.unwrap_err().into_response();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(second);
    assert!(limiter.acquire(&two).await.is_ok());
}

#[tokio::test]
async fn queued_requests_count_towards_concurrency() {
    let limiter = limiter(2, 10);
    let held = [
        ask(&limiter, "a").await.unwrap(),
        ask(&limiter, "a").await.unwrap(),
    ];
    let mut one = caller("one");
    one.concurrency = Some(1);
    let mut waiting = std::pin::pin!(limiter.acquire(&one));
    assert!(waiting.as_mut().now_or_never().is_none());
    let refused = limiter.acquire(&one).await.unwrap_err().into_response();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(held);
    let turn = waiting.await.unwrap();
    assert!(limiter.acquire(&one).await.is_err());
    drop(turn);
    assert!(limiter.acquire(&one).await.is_ok());
}

#[tokio::test]
async fn rate_limit_error_has_retry_after() {
    let limiter = limiter(1, 1);
    let mut slow = caller("slow");
    slow.rate = Some("2/m".parse().unwrap());
    limiter.check_rate(&slow).unwrap();
    limiter.check_rate(&slow).unwrap();
    let refused = limiter.check_rate(&slow).unwrap_err().into_response();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "30");
    limiter.check_rate(&caller("other")).unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Ask(u8),
    /// Ends a run.
    End(usize),
    /// Drops a waiting request.
    Leave(usize),
}

proptest! {
    /// For all sequences of requests, ends and cancellations, no permit is lost or issued twice.
    #[test]
    fn permits_are_neither_lost_nor_doubled(
        places in 1usize..4,
        queue in 0usize..4,
        steps in proptest::collection::vec(
            prop_oneof![
                (0u8..3).prop_map(Step::Ask),
                any::<usize>().prop_map(Step::End),
                any::<usize>().prop_map(Step::Leave),
            ],
            1..100,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let limiter = limiter(places, queue);
            let (mut held, mut waiting) = (Vec::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Ask(name) => waiting.push(ask(&limiter, &format!("c{name}"))),
                    Step::End(at) if !held.is_empty() => drop(held.swap_remove(at % held.len())),
                    Step::Leave(at) if !waiting.is_empty() => drop(waiting.swap_remove(at % waiting.len())),
                    Step::End(_) | Step::Leave(_) => {}
                }
                let mut still = Vec::new();
                for mut asking in waiting {
                    match (&mut asking).now_or_never() {
                        Some(Ok(turn)) => held.push(turn),
                        Some(Err(status)) => assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE),
                        None => still.push(asking),
                    }
                }
                waiting = still;
                assert!(held.len() <= places);
                assert!(waiting.is_empty() || held.len() == places, "an unused permit while requests wait");
            }
            drop(waiting);
            held.clear();
            for _ in 0..places {
                held.push(ask(&limiter, "last").now_or_never().expect("a permit was lost").unwrap());
            }
        });
    }
}
