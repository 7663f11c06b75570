//! Records in one block of bytes: appended at the end, removed anywhere, without gaps.
//!
//! Pending requests to the client and subscriptions are such records: few, of very different sizes, seldom
//! changed. To walk over all of them costs less than an index.

use crate::memory::Store;
use crate::sink::{copy, move_down};

/// The store is too small for one more record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoRoomError;

/// The bytes that a record needs besides its data: length, owner, kind, tag.
pub const OVERHEAD: usize = 10;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'r> {
    /// The owner: any number that the user of the records chooses.
    pub owner: u32,
    /// The kind: any number that the user of the records chooses.
    pub kind: u8,
    /// A small changeable value.
    pub tag: u8,
    /// The data.
    pub data: &'r [u8],
    at: usize,
}

impl Record<'_> {
    /// Returns its position, for [`Records::set_tag`]; valid until a record is removed.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Returns its size in bytes, with the [`OVERHEAD`].
    #[must_use]
    pub const fn size(&self) -> usize {
        OVERHEAD + self.data.len()
    }
}

/// Records in a [`Store`], oldest first.
///
/// ```
/// use mcp_sansio::memory::{Store, records::Records};
/// let mut bytes = [0; 64];
/// let mut records = Records::new(Store::from(&mut bytes));
/// records.push(1, 0, 0, &[b"one"]).unwrap();
/// records.push(2, 0, 0, &[b"two"]).unwrap();
/// records.remove(|record| record.owner == 1);
/// assert_eq!(records.iter().next().unwrap().data, b"two");
/// ```
#[derive(Debug)]
pub struct Records<'m> {
    store: Store<'m>,
    used: usize,
}

impl<'m> Records<'m> {
    /// Makes an empty list of records in `store`.
    #[must_use]
    pub const fn new(store: Store<'m>) -> Self {
        Records { store, used: 0 }
    }

    /// Returns how many bytes are in use.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Returns the most bytes that can be in use.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.store.limit()
    }

    /// Appends a record. Its data are `parts`, one after the other.
    ///
    /// # Errors
    /// [`NoRoomError`] if it does not fit; then nothing has changed.
    pub fn push(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoomError> {
        let size = record_size(parts);
        if !self.store.reach(self.used.saturating_add(size)) {
            return Err(NoRoomError);
        }
        let free = self.store.bytes_mut().get_mut(self.used..).ok_or(NoRoomError)?;
        write_record(free, owner, kind, tag, parts)?;
        self.used += size;
        Ok(())
    }

    /// Begins a record without data at the end and returns its position. Add data with
    /// [`extend`](Records::extend).
    ///
    /// # Errors
    /// [`NoRoomError`] if it does not fit; then nothing has changed.
    pub fn begin(&mut self, owner: u32, kind: u8, tag: u8) -> Result<usize, NoRoomError> {
        let at = self.used;
        self.push(owner, kind, tag, &[])?;
        Ok(at)
    }

    /// Appends to the data of the last record, which is at `at`.
    ///
    /// # Errors
    /// [`NoRoomError`] if `bytes` do not fit; then nothing has changed.
    pub fn extend(&mut self, at: usize, bytes: &[u8]) -> Result<(), NoRoomError> {
        let end = self.used.saturating_add(bytes.len());
        if !self.store.reach(end) {
            return Err(NoRoomError);
        }
        copy(self.store.bytes_mut().get_mut(self.used..).unwrap_or(&mut []), bytes);
        self.used = end;
        self.set_last_len(at);
        Ok(())
    }

    /// Cuts the last record, which is at `at`, to `len` bytes of data.
    pub fn shorten(&mut self, at: usize, len: usize) {
        self.used = self.used.min(at + OVERHEAD + len);
        self.set_last_len(at);
    }

    /// Drops the last record, which is at `at`.
    pub fn drop_last(&mut self, at: usize) {
        self.used = self.used.min(at);
    }

    /// Returns the data of the last record, which begins at `at`.
    pub(crate) fn last(&self, at: usize) -> &[u8] {
        self.store.bytes().get(at + OVERHEAD..self.used).unwrap_or(&[])
    }

    /// Returns the record at `at`.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Record<'_>> {
        RecordIter { live: self.live(), at }.next()
    }

    fn set_last_len(&mut self, at: usize) {
        let len = (self.used - at).saturating_sub(OVERHEAD) as u32;
        copy(self.store.bytes_mut().get_mut(at..).unwrap_or(&mut []), &len.to_le_bytes());
    }

    /// Returns all records, oldest first.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter { live: self.store.bytes().get(..self.used).unwrap_or(&[]), at: 0 }
    }

    /// Returns the records from the one at `at` on.
    pub(crate) fn iter_from(&self, at: usize) -> RecordIter<'_> {
        RecordIter { live: self.live(), at }
    }

    /// Removes the records for which `which` returns `true`; the others keep their order.
    pub fn remove(&mut self, mut which: impl FnMut(&Record<'_>) -> bool) {
        let (mut from, mut to) = (0, 0);
        while let Some(record) = (RecordIter { live: self.live(), at: from }).next() {
            let size = OVERHEAD + record.data.len();
            if !which(&record) {
                if from > to {
                    move_down(self.store.bytes_mut(), from, to..to + size + (from - to));
                }
                to += size;
            }
            from += size;
        }
        self.used = to;
    }

    /// Changes the tag of each record for which `tag` returns one. Returns whether there was such a record.
    pub fn retag(&mut self, tag: impl Fn(&Record<'_>) -> Option<u8>) -> bool {
        let (mut at, mut any) = (0, false);
        while let Some(record) = (RecordIter { live: self.live(), at }).next() {
            let (size, tag) = (OVERHEAD + record.data.len(), tag(&record));
            if let Some(tag) = tag {
                self.set_tag(at, tag);
                any = true;
            }
            at += size;
        }
        any
    }

    /// Changes the tag of the record at `at`.
    pub fn set_tag(&mut self, at: usize, tag: u8) {
        if let Some(place) = self.store.bytes_mut().get_mut(at + TAG_AT) {
            *place = tag;
        }
    }

    /// Returns the records, to read, and a draft in the free bytes after them, to write new records. The store
    /// grows by up to `spare` bytes. The new records count after [`commit`](Records::commit).
    pub fn split(&mut self, spare: usize) -> (RecordIter<'_>, Draft<'_>) {
        // The draft reports missing room when a record is written.
        let _ = self.store.reach(self.used.saturating_add(spare).min(self.store.limit()));
        match self.store.bytes_mut().split_at_mut_checked(self.used) {
            Some((live, free)) => (RecordIter { live, at: 0 }, Draft { free, used: 0 }),
            None => (RecordIter { live: &[], at: 0 }, Draft { free: &mut [], used: 0 }),
        }
    }

    /// Adds the first `written` bytes of a [`Draft`] to the records.
    pub fn commit(&mut self, written: usize) {
        self.used = (self.used + written).min(self.store.bytes().len());
    }

    fn live(&self) -> &[u8] {
        self.store.bytes().get(..self.used).unwrap_or(&[])
    }
}

/// New records that do not count yet, in the free bytes after the others. See [`Records::split`].
#[derive(Debug)]
pub struct Draft<'r> {
    free: &'r mut [u8],
    used: usize,
}

impl Draft<'_> {
    /// Appends a record to the draft.
    ///
    /// # Errors
    /// [`NoRoomError`] if it does not fit.
    pub fn push(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoomError> {
        let free = self.free.get_mut(self.used..).ok_or(NoRoomError)?;
        self.used += write_record(free, owner, kind, tag, parts)?;
        Ok(())
    }

    /// Returns the number of bytes written, for [`Records::commit`].
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Drops all records of the draft.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

/// A place for new records: the records themselves, or a draft while they are being read.
#[cfg_attr(not(feature = "ask"), allow(dead_code, reason = "only questions are kept in this way"))]
pub(crate) trait Keep {
    /// Appends a record.
    fn keep(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoomError>;
    /// Drops the records of `owner`; of a draft, all.
    fn drop_all(&mut self, owner: u32);
}

impl Keep for Records<'_> {
    fn keep(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoomError> {
        self.push(owner, kind, tag, parts)
    }

    fn drop_all(&mut self, owner: u32) {
        self.remove(|record| record.owner == owner);
    }
}

impl Keep for Draft<'_> {
    fn keep(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoomError> {
        self.push(owner, kind, tag, parts)
    }

    fn drop_all(&mut self, _: u32) {
        self.clear();
    }
}

/// An iterator over records, see [`Records::iter`].
#[derive(Clone, Debug)]
pub struct RecordIter<'r> {
    live: &'r [u8],
    at: usize,
}

const OWNER_AT: usize = 4;
const KIND_AT: usize = 8;
const TAG_AT: usize = 9;

impl<'r> Iterator for RecordIter<'r> {
    type Item = Record<'r>;

    fn next(&mut self) -> Option<Record<'r>> {
        let at = self.at;
        let head: &[u8; OVERHEAD] = self.live.get(at..)?.first_chunk()?;
        let [a, b, c, d, e, f, g, h, kind, tag] = *head;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        let owner = u32::from_le_bytes([e, f, g, h]);
        let start = at + OVERHEAD;
        let data = self.live.get(start..start.checked_add(len)?)?;
        self.at = start + len;
        Some(Record { owner, kind, tag, data, at })
    }
}

fn record_size(parts: &[&[u8]]) -> usize {
    OVERHEAD + parts.iter().map(|part| part.len()).sum::<usize>()
}

fn write_record(free: &mut [u8], owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<usize, NoRoomError> {
    let size = record_size(parts);
    let place = free.get_mut(..size).ok_or(NoRoomError)?;
    let len = u32::try_from(size - OVERHEAD).map_err(|_| NoRoomError)?;
    put(place, 0, &len.to_le_bytes());
    put(place, OWNER_AT, &owner.to_le_bytes());
    put(place, KIND_AT, &[kind, tag]);
    let mut at = OVERHEAD;
    for part in parts {
        put(place, at, part);
        at += part.len();
    }
    Ok(size)
}

fn put(place: &mut [u8], at: usize, bytes: &[u8]) {
    copy(place.get_mut(at..).unwrap_or(&mut []), bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removable_anywhere() {
        let mut bytes = [0; 64];
        let mut records = Records::new(Store::from(&mut bytes));
        records.push(1, 7, 0, &[b"one"]).unwrap();
        records.push(2, 7, 0, &[b"t", b"wo"]).unwrap();
        records.push(3, 8, 9, &[b"three"]).unwrap();
        assert_eq!(records.used(), 3 * OVERHEAD + 11);
        assert_eq!(records.push(4, 0, 0, &[&[0; 14]]), Err(NoRoomError));
        records.remove(|record| record.owner == 2);
        let left: [_; 2] = core::array::from_fn(|i| records.iter().nth(i).unwrap());
        assert_eq!((left[0].data, left[1].data, left[1].tag), (&b"one"[..], &b"three"[..], 9));
        let at = left[1].at();
        records.set_tag(at, 4);
        assert_eq!(records.iter().last().unwrap().tag, 4);
        records.push(4, 0, 0, &[&[0; 24]]).unwrap();
        assert_eq!(records.iter().count(), 3);
    }

    #[test]
    fn a_draft_counts_only_when_committed() {
        let mut bytes = [0; 64];
        let mut records = Records::new(Store::from(&mut bytes));
        records.push(1, 0, 0, &[b"old"]).unwrap();
        let (live, mut draft) = records.split(32);
        draft.push(2, 0, 0, &[b"new"]).unwrap();
        draft.clear();
        assert_eq!(draft.used(), 0);
        draft.push(2, 0, 0, &[b"new"]).unwrap();
        let written = draft.used();
        assert_eq!(written, OVERHEAD + 3);
        assert_eq!(live.count(), 1);
        assert_eq!(records.iter().count(), 1);
        records.commit(written);
        assert_eq!(records.iter().last().unwrap().data, b"new");
    }
}
