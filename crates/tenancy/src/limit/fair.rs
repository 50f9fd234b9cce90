//! Turns between callers who want more than there is. A free place goes to the waiting caller who has
//! the fewest, and among equals to the one who was served longest ago; so however many requests one
//! caller piles up, another's next request waits for at most one place to become free.
//!
//! The queue is bounded. When it is full, the longest line gives up its newest member to a caller whose
//! line is shorter: a flood crowds out itself and nobody else.

use std::collections::{BTreeMap, VecDeque};

/// A place in the queue.
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
    /// When it was last served, counted in turns.
    served: u64,
    waiting: VecDeque<(QueueTicket, T)>,
}

/// What became of a request.
#[derive(Debug)]
pub enum Enqueued<T> {
    /// It has a place.
    Admitted(T),
    /// It waits. Whoever had to make room for it is told to leave.
    Queued(QueueTicket, Option<T>),
    /// There is no room even to wait.
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

    /// More places, or fewer, from now on. Nobody is sent away; [`Self::call`] says who comes in.
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

    /// How many places a caller has, or will have when its turns come.
    pub fn demand_of(&self, caller: &str) -> usize {
        let line = self.callers.get(caller);
        line.map_or(0, |line| line.running + line.waiting.len())
    }

    pub fn enter(&mut self, caller: &str, item: T) -> Enqueued<T> {
        if self.running < self.slots_max {
            self.seat(caller);
            return Enqueued::Admitted(item);
        }
        let mut evicted = None;
        if self.waiting >= self.queue_max {
            match self.evict(self.line_len(caller)) {
                Some(item) => evicted = Some(item),
                None => return Enqueued::Rejected(item),
            }
        }
        self.tickets += 1;
        let ticket = QueueTicket(self.tickets);
        self.waiting += 1;
        self.line(caller).waiting.push_back((ticket, item));
        Enqueued::Queued(ticket, evicted)
    }

    /// A place becomes free. Returns who gets it, and under which name.
    pub fn leave(&mut self, caller: &str) -> Option<(String, T)> {
        if let Some(line) = self.callers.get_mut(caller) {
            line.running = line.running.saturating_sub(1);
            self.running = self.running.saturating_sub(1);
        }
        self.forget(caller);
        self.pop_next()
    }

    /// Who gets a place that is free, and under which name; `None` where there is none, or nobody waits.
    pub fn pop_next(&mut self) -> Option<(String, T)> {
        if self.running >= self.slots_max {
            return None;
        }
        let next = self
            .callers
            .iter()
            .filter(|(_, line)| !line.waiting.is_empty())
            .min_by_key(|(_, line)| (line.running, line.served))
            .map(|(caller, _)| caller.clone())?;
        let (_, item) = self.callers.get_mut(&next)?.waiting.pop_front()?;
        self.waiting -= 1;
        self.seat(&next);
        Some((next, item))
    }

    /// Gives up waiting. `None` if the turn had come already.
    pub fn withdraw(&mut self, caller: &str, ticket: QueueTicket) -> Option<T> {
        let line = self.callers.get_mut(caller)?;
        let at = line.waiting.iter().position(|(waiting, _)| *waiting == ticket)?;
        let (_, item) = line.waiting.remove(at)?;
        self.waiting -= 1;
        self.forget(caller);
        Some(item)
    }

    fn line(&mut self, caller: &str) -> &mut CallerQueue<T> {
        self.callers.entry(String::from(caller)).or_insert_with(|| CallerQueue {
            running: 0,
            served: 0,
            waiting: VecDeque::new(),
        })
    }

    fn line_len(&self, caller: &str) -> usize {
        self.callers.get(caller).map_or(0, |line| line.waiting.len())
    }

    fn seat(&mut self, caller: &str) {
        self.running += 1;
        self.turns += 1;
        let turn = self.turns;
        let line = self.line(caller);
        line.running += 1;
        line.served = turn;
    }

    /// Takes the newest member of the longest line, if that line is longer than `than` and one more.
    fn evict(&mut self, than: usize) -> Option<T> {
        let (caller, line) = self
            .callers
            .iter_mut()
            .max_by_key(|(_, line)| line.waiting.len())?;
        if line.waiting.len() <= than + 1 {
            return None;
        }
        let caller = caller.clone();
        let (_, item) = line.waiting.pop_back()?;
        self.waiting -= 1;
        self.forget(&caller);
        Some(item)
    }

    /// A caller who has nothing and wants nothing takes no memory.
    fn forget(&mut self, caller: &str) {
        let idle = |line: &CallerQueue<T>| line.running == 0 && line.waiting.is_empty();
        if self.callers.get(caller).is_some_and(idle) {
            self.callers.remove(caller);
        }
    }
}
