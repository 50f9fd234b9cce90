//! A mock HTTP server on a free local port that sends scripted bytes and records its requests. It runs on
//! threads, so that blocking and asynchronous tests can use it.

mod received;
mod response;
mod scripted;

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub use received::ReceivedRequest;
pub use response::{ResponsePart, ScriptedResponse};
pub use scripted::scripted;

type Responder = dyn Fn(usize, &ReceivedRequest) -> ScriptedResponse + Send + Sync;

#[derive(Debug)]
pub struct MockServer {
    pub address: SocketAddr,
    shared: Arc<ServerState>,
}

#[derive(Debug, Default)]
struct ServerState {
    asked: Mutex<Vec<ReceivedRequest>>,
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl MockServer {
    /// Every request gets the same response.
    pub fn with_responses(answer: ScriptedResponse) -> Self {
        Self::with_responder(move |_, _| answer.clone())
    }

    /// The response depends on the request and on the number of earlier ones.
    pub fn with_responder(
        answering: impl Fn(usize, &ReceivedRequest) -> ScriptedResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<ServerState>::default();
        let (of_server, answering) = (shared.clone(), Arc::new(answering) as Arc<Responder>);
        thread::spawn(move || {
            for caller in listener.incoming() {
                if of_server.is_stopped() {
                    return;
                }
                let (shared, answering) = (of_server.clone(), answering.clone());
                if let Ok(caller) = caller {
                    thread::spawn(move || shared.serve(caller, &*answering));
                }
            }
        });
        Self { address, shared }
    }

    /// `http://127.0.0.1:PORT` followed by `path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests received so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        lock(&self.shared.asked).clone()
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        *lock(&self.shared.stopped) = true;
        self.shared.changed.notify_all();
        // Wakes the thread that accepts connections.
        TcpStream::connect(self.address).ok();
    }
}

impl ServerState {
    fn is_stopped(&self) -> bool {
        *lock(&self.stopped)
    }

    /// Waits, but no longer than the server runs.
    fn pause(&self, pause: Duration) {
        let stopped = lock(&self.stopped);
        let waited = self
            .changed
            .wait_timeout_while(stopped, pause, |stopped| !*stopped);
        drop(waited);
    }

    /// Serves one connection until it is closed.
    fn serve(&self, mut caller: TcpStream, answering: &Responder) {
        caller.set_nodelay(true).ok();
        while let Some(asked) = ReceivedRequest::read(&mut caller) {
            let count = {
                let mut all = lock(&self.asked);
                all.push(asked.clone());
                all.len() - 1
            };
            let answer = answering(count, &asked);
            if self.play(&mut caller, &answer).is_err() || !answer.keeps_open {
                break;
            }
        }
        caller.shutdown(Shutdown::Both).ok();
    }

    /// A write error means that the client has disconnected, which is allowed.
    fn play(&self, caller: &mut TcpStream, answer: &ScriptedResponse) -> std::io::Result<()> {
        for piece in &answer.pieces {
            match piece {
                ResponsePart::Bytes(bytes) => caller.write_all(bytes)?,
                ResponsePart::Repeat(bytes, times) => {
                    for _ in 0..*times {
                        caller.write_all(bytes)?;
                    }
                }
                ResponsePart::Pause(pause) => self.pause(*pause),
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
