//! RAII guard of one call of one instance. Its slot is released on drop, also when the task is cancelled.

use std::sync::Arc;

use ir::Error;

use super::Fleet;

#[derive(Debug)]
pub struct InFlightGuard {
    fleet: Arc<Fleet>,
    member: usize,
    began_ms: u64,
    probe: bool,
    got_first_token: bool,
    mirror: bool,
}

impl InFlightGuard {
    pub(super) fn new(fleet: Arc<Fleet>, member: usize, probe: bool, began_ms: u64) -> Self {
        Self {
            fleet,
            member,
            began_ms,
            probe,
            got_first_token: false,
            mirror: false,
        }
    }

    pub(super) fn into_mirror(mut self) -> Self {
        self.mirror = true;
        self
    }

    pub fn member(&self) -> usize {
        self.member
    }

    pub fn began_ms(&self) -> u64 {
        self.began_ms
    }

    /// The first token arrived.
    pub fn first_token(&mut self, now_ms: u64) {
        if self.got_first_token {
            return;
        }
        self.got_first_token = true;
        let instance = self.fleet.instance(self.member);
        instance.first_token(now_ms.saturating_sub(self.began_ms) as f64);
        if std::mem::take(&mut self.probe) {
            instance.succeed();
        }
    }

    pub fn succeed(mut self) {
        self.probe = false;
        self.fleet.instance(self.member).succeed();
    }

    pub fn fail(mut self, error: &Error, now_ms: u64) {
        self.probe = false;
        let settings = self.fleet.settings();
        self.fleet.instance(self.member).fail(error, now_ms, settings);
    }

    /// Another attempt was faster.
    pub fn hedge_lost(self, now_ms: u64) {
        if !self.got_first_token {
            let waited_ms = now_ms.saturating_sub(self.began_ms);
            self.fleet
                .instance(self.member)
                .record_censored_ttft(waited_ms as f64);
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let instance = self.fleet.instance(self.member);
        if self.probe {
            instance.release_probe();
        }
        instance.end();
        if self.mirror {
            self.fleet.end_mirror();
        }
    }
}
