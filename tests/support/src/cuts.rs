/// Returns the ways in which an input test cuts its bytes: whole, byte by byte, and at every position into two.
/// Each item is the pieces in order. A reader must get the same results from all of them.
pub fn cuts(input: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let whole = std::iter::once(vec![input]);
    let bytes = std::iter::once(input.chunks(1).collect());
    let halves = (1..input.len()).map(move |at| vec![&input[..at], &input[at..]]);
    whole.chain(bytes).chain(halves)
}
