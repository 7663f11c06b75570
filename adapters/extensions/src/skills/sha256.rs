//! SHA-256 that the compiler can run: the digests of a constant table cost nothing at run time.

/// Computes the digest of bytes ([FIPS 180-4](https://csrc.nist.gov/pubs/fips/180-4/upd1/final)).
pub(crate) const fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut state: [u32; 8] =
        [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    let mut rest = bytes;
    while let Some((block, behind)) = rest.split_first_chunk::<64>() {
        state = compress(state, block);
        rest = behind;
    }
    finish(state, rest, bytes.len() as u64 * 8)
}

/// Adds the last bytes, a one bit, zeros, and the length in bits.
#[allow(clippy::indexing_slicing, reason = "bounded by the loops; a const fn has no iterators")]
const fn finish(mut state: [u32; 8], rest: &[u8], bits: u64) -> [u8; 32] {
    let mut block = [0; 64];
    let mut at = 0;
    while at < rest.len() && at < 63 {
        block[at] = rest[at];
        at += 1;
    }
    block[at] = 0x80;
    if rest.len() > 55 {
        state = compress(state, &block);
        block = [0; 64];
    }
    let length = bits.to_be_bytes();
    at = 0;
    while at < 8 {
        block[56 + at] = length[at];
        at += 1;
    }
    state = compress(state, &block);
    let mut digest = [0; 32];
    at = 0;
    while at < 32 {
        digest[at] = state[at / 4].to_be_bytes()[at % 4];
        at += 1;
    }
    digest
}

#[allow(clippy::indexing_slicing, reason = "bounded by the loops; a const fn has no iterators")]
const fn compress(state: [u32; 8], block: &[u8; 64]) -> [u32; 8] {
    let mut words = [0u32; 64];
    let mut i = 0;
    while i < 16 {
        words[i] = u32::from_be_bytes([block[4 * i], block[4 * i + 1], block[4 * i + 2], block[4 * i + 3]]);
        i += 1;
    }
    while i < 64 {
        let (early, late) = (words[i - 15], words[i - 2]);
        let early = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let late = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        words[i] = words[i - 16].wrapping_add(early).wrapping_add(words[i - 7]).wrapping_add(late);
        i += 1;
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    i = 0;
    while i < 64 {
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(ROUND[i]).wrapping_add(words[i]);
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = sum.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
        i += 1;
    }
    [
        state[0].wrapping_add(a),
        state[1].wrapping_add(b),
        state[2].wrapping_add(c),
        state[3].wrapping_add(d),
        state[4].wrapping_add(e),
        state[5].wrapping_add(f),
        state[6].wrapping_add(g),
        state[7].wrapping_add(h),
    ]
}

#[rustfmt::skip]
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

#[cfg(all(test, feature = "skills-client"))]
mod tests {
    use std::vec::Vec;

    #[test]
    fn as_the_library_does() {
        use sha2::Digest as _;
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for len in (0..200).chain([255, 256, 257, 511, 512, 1000]) {
            let expected: [u8; 32] = sha2::Sha256::digest(&bytes[..len]).into();
            assert_eq!(super::sha256(&bytes[..len]), expected, "{len}");
        }
    }
}
