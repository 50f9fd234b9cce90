//! Fair queueing between callers. A free slot goes to the queued caller with the fewest running requests,
//! and among equals to the least recently served one. So the next request of a caller waits for at most one
//! slot to become free, however many requests another caller has queued.
//!
//! The queue is bounded. When it is full, the newest request of the longest caller queue is evicted in
//! favour of a caller with a shorter queue, so that a flood evicts only its own requests.

use std::collections::{BTreeMap, VecDeque};

/// Identifies a queued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueTicket(u64);

#[derive(Debug)]
pub struct FairQueue<T> {
    slots_max: usize,
    queue_max: usize,
    running: usize,
    waiting: usize,
    callers: BTreeMap<String, CallerQueue<T>>,
    tickets: u64,
    turns: u64,
}

#[derive(Debug)]
struct CallerQueue<T> {
    running: usize,
    /// When it was last served, as a count of served requests.
    served: u64,
    waiting: VecDeque<(QueueTicket, T)>,
}

/// The result of entering a request.
#[derive(Debug)]
pub enum Enqueued<T> {
    /// It has a slot.
    Admitted(T),
    /// It is queued. The second value is the request evicted to make room, which the owner must cancel.
    Queued(QueueTicket, Option<T>),
    /// Rejected: the queue is full.
    Rejected(T),
}

impl<T> FairQueue<T> {
    pub fn new(slots_max: usize, queue_max: usize) -> Self {
        Self {
            slots_max,
            queue_max,
            running: 0,
            waiting: 0,
            callers: BTreeMap::new(),
            tickets: 0,
            turns: 0,
        }
    }

    /// Changes the limits from now on. Running requests continue; [`Self::pop_next`] returns requests that
    /// got a slot.
    pub fn resize(&mut self, places_max: usize, queue_max: usize) {
        self.slots_max = places_max;
        self.queue_max = queue_max;
    }

    pub fn running(&self) -> usize {
        self.running
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Slots that a caller occupies or is queued for.
    pub fn demand_of(&self, caller: &str) -> usize {
        let queue = self.callers.get(caller);
        queue.map_or(0, |queue| queue.running + queue.waiting.len())
    }

    pub fn enter(&mut self, caller: &str, item: T) -> Enqueued<T> {
        if self.running < self.slots_max {
            self.occupy_slot(caller);
            return Enqueued::Admitted(item);
        }
        let mut evicted = None;
        if self.waiting >= self.queue_max {
            match self.evict(self.queue_len(caller)) {
                Some(item) => evicted = Some(item),
                None => return Enqueued::Rejected(item),
            }
        }
        self.tickets += 1;
        let ticket = QueueTicket(self.tickets);
        self.waiting += 1;
        self.queue_mut(caller).waiting.push_back((ticket, item));
        Enqueued::Queued(ticket, evicted)
    }

    /// Releases a slot. Returns the request that gets it, with its caller.
    pub fn leave(&mut self, caller: &str) -> Option<(String, T)> {
        if let Some(queue) = self.callers.get_mut(caller) {
            queue.running = queue.running.saturating_sub(1);
            self.running = self.running.saturating_sub(1);
        }
        self.remove_if_idle(caller);
        self.pop_next()
    }

    /// The next queued request, with its caller, if a slot is free; `None` if no slot is free or the queue
    /// is empty.
    pub fn pop_next(&mut self) -> Option<(String, T)> {
        if self.running >= self.slots_max {
            return None;
        }
        let next = self
            .callers
            .iter()
            .filter(|(_, queue)| !queue.waiting.is_empty())
            .min_by_key(|(_, queue)| (queue.running, queue.served))
            .map(|(caller, _)| caller.clone())?;
        let (_, item) = self.callers.get_mut(&next)?.waiting.pop_front()?;
        self.waiting -= 1;
        self.occupy_slot(&next);
        Some((next, item))
    }

    /// Removes a queued request. `None` if it already has a slot.
    pub fn withdraw(&mut self, caller: &str, ticket: QueueTicket) -> Option<T> {
        let queue = self.callers.get_mut(caller)?;
        let at = queue.waiting.iter().position(|(waiting, _)| *waiting == ticket)?;
        let (_, item) = queue.waiting.remove(at)?;
        self.waiting -= 1;
        self.remove_if_idle(caller);
        Some(item)
    }

    fn queue_mut(&mut self, caller: &str) -> &mut CallerQueue<T> {
        self.callers
            .entry(String::from(caller))
            .or_insert_with(|| CallerQueue {
                running: 0,
                served: 0,
                waiting: VecDeque::new(),
            })
    }

    fn queue_len(&self, caller: &str) -> usize {
        self.callers.get(caller).map_or(0, |queue| queue.waiting.len())
    }

    fn occupy_slot(&mut self, caller: &str) {
        self.running += 1;
        self.turns += 1;
        let turn = self.turns;
        let queue = self.queue_mut(caller);
        queue.running += 1;
        queue.served = turn;
    }

    /// Evicts the newest request of the longest caller queue, if that queue is longer than `than + 1`.
    fn evict(&mut self, than: usize) -> Option<T> {
        let (caller, queue) = self
            .callers
            .iter_mut()
            .max_by_key(|(_, queue)| queue.waiting.len())?;
        if queue.waiting.len() <= than + 1 {
            return None;
        }
        let caller = caller.clone();
        let (_, item) = queue.waiting.pop_back()?;
        self.waiting -= 1;
        self.remove_if_idle(&caller);
        Some(item)
    }

    /// Removes the entry of a caller without running and queued requests.
    fn remove_if_idle(&mut self, caller: &str) {
        let idle = |queue: &CallerQueue<T>| queue.running == 0 && queue.waiting.is_empty();
        if self.callers.get(caller).is_some_and(idle) {
            self.callers.remove(caller);
        }
    }
}
