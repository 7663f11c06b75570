//! A seal for tests: it binds a state to all of its associated data, with a checksum instead of a MAC.

use mcp_sansio::server::{AssociatedData, Seal, SealError};

pub struct ToySeal {
    pub lifetime: u64,
}

pub static SEAL: ToySeal = ToySeal { lifetime: 60_000 };

fn checksum(bound: &AssociatedData<'_>, expires: u64, state: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    let principal = bound.principal.unwrap_or("nobody");
    for part in [bound.method.as_bytes(), bound.target, bound.arguments, principal.as_bytes(), state] {
        for byte in part.iter().chain(b"|") {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    sum ^ expires.rotate_left(17)
}

impl Seal for ToySeal {
    fn seal(&self, bound: &AssociatedData<'_>, state: &[u8], sealed: &mut [u8]) -> Result<usize, SealError> {
        let expires = bound.now + self.lifetime;
        let len = 16 + state.len();
        let place = sealed.get_mut(..len).ok_or(SealError::Room)?;
        place[..8].copy_from_slice(&expires.to_le_bytes());
        place[8..16].copy_from_slice(&checksum(bound, expires, state).to_le_bytes());
        place[16..].copy_from_slice(state);
        Ok(len)
    }

    fn open(&self, bound: &AssociatedData<'_>, sealed: &[u8], state: &mut [u8]) -> Result<usize, SealError> {
        let (head, inner) = sealed.split_at_checked(16).ok_or(SealError::Broken)?;
        let expires = u64::from_le_bytes(head[..8].try_into().unwrap());
        let sum = u64::from_le_bytes(head[8..].try_into().unwrap());
        if sum != checksum(bound, expires, inner) || bound.now >= expires {
            return Err(SealError::Broken);
        }
        state.get_mut(..inner.len()).ok_or(SealError::Room)?.copy_from_slice(inner);
        Ok(inner.len())
    }
}
