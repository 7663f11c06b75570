//! Bytes that shall be hard to guess: ids of sessions, the key of the seal, TCP's sequence numbers.
//!
//! **This chip has no source of randomness.** What is here is a pool that SHA-256 stirs, filled from a constant in flash
//! and from the cycle in which each frame came. The constant is the same in every image, and how much a cycle is worth
//! depends on the network: on a board that matters, stir in what its true random number generator gives, or a secret
//! written into each board when it was made, before the first call of `fill`.

use sha2::{Digest, Sha256};

/// In place of what every board would have of its own.
const SEED: &[u8] = b"mcp-sansio ethernet: the same in every board";

pub(crate) struct Random {
    pool: [u8; 32],
    /// The cycles of frames that came, until they are stirred in.
    caught: [u8; 32],
    next: usize,
}

impl Random {
    pub(crate) fn new() -> Self {
        Random { pool: Sha256::digest(SEED).into(), caught: [0; 32], next: 0 }
    }

    /// Something happened that nobody could know the time of.
    pub(crate) fn catch(&mut self, cycles: u32) {
        for byte in cycles.to_le_bytes().into_iter().take(2) {
            if let Some(place) = self.caught.get_mut(self.next) {
                *place = byte;
            }
            self.next += 1;
        }
        if self.next >= self.caught.len() {
            self.stir();
        }
    }

    fn stir(&mut self) {
        self.next = 0;
        self.pool =
            Sha256::new().chain_update(b"stir").chain_update(self.pool).chain_update(self.caught).finalize().into();
    }

    /// Fills `bytes`; what was given before cannot be found from what is left.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(32) {
            self.stir();
            let given = Sha256::new().chain_update(b"give").chain_update(self.pool).finalize();
            for (place, byte) in part.iter_mut().zip(given) {
                *place = byte;
            }
        }
        self.stir();
    }
}
