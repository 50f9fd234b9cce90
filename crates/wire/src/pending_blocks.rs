//! Blocks that a dialect can only encode as a whole: calls, media. They are buffered until complete and
//! returned in the order in which they began.

use ir::{Block, Delta, Event, Fold, Ledger, Part};

#[derive(Debug, Default)]
pub(crate) struct PendingBlocks {
    blocks: Vec<(u32, Fold)>,
}

impl PendingBlocks {
    pub(crate) fn start(&mut self, index: u32, block: Block) {
        let mut fold = Fold::new();
        fold.push(Event::BlockStart { index, block });
        self.blocks.push((index, fold));
    }

    /// Consumes a delta if it belongs to a buffered block.
    pub(crate) fn delta(&mut self, index: u32, delta: &Delta) -> bool {
        let Some((_, fold)) = self.blocks.iter_mut().rev().find(|(at, _)| *at == index) else {
            return false;
        };
        fold.push(Event::BlockDelta {
            index,
            delta: delta.clone(),
        });
        true
    }

    /// Removes all buffered blocks in their current state, each with its JSON pointer in the response.
    pub(crate) fn drain(&mut self, ledger: &mut Ledger) -> Vec<(String, Part)> {
        let mut parts = Vec::new();
        for (index, fold) in self.blocks.drain(..) {
            let pointer = format!("/result/payload/content_parts/{index}");
            match fold.finish() {
                Ok(whole) => parts.extend(whole.parts.into_iter().map(|part| (pointer.clone(), part))),
                Err(error) => ledger.dropped(pointer, error.message),
            }
        }
        parts
    }
}
