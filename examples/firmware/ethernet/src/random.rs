//! Random bytes for session ids, the key of the seal, and TCP's sequence numbers.
//!
//! **This chip has no source of randomness.** This module has a pool that SHA-256 mixes, filled from a constant in
//! flash and from the cycle in which each frame arrived. The constant is the same in every image. The cycles are
//! only as unpredictable as the network. For a real board, add the output of its true random number generator, or a
//! secret written into each board in production, before the first call of `fill`.

use sha2::{Digest, Sha256};

/// The same for every board. A real board needs a secret here.
const SEED: &[u8] = b"mcp-sansio ethernet: the same in every board";

pub(crate) struct Random {
    pool: [u8; 32],
    /// The cycles of arrived frames, not mixed in yet.
    caught: [u8; 32],
    next: usize,
}

impl Random {
    pub(crate) fn new() -> Self {
        Random { pool: Sha256::digest(SEED).into(), caught: [0; 32], next: 0 }
    }

    /// Returns another source. The state of this one does not reveal its bytes.
    #[cfg(feature = "fixture")]
    pub(crate) fn fork(&mut self) -> Random {
        let mut pool = [0; 32];
        self.fill(&mut pool);
        Random { pool, ..Random::new() }
    }

    /// Adds the time of an event that an attacker cannot predict.
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

    /// Fills `bytes`. The state that remains does not reveal them.
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
