//! Records in one block of lent bytes: appended at the end, removable anywhere, never fragmented.
//!
//! Pending questions and subscriptions are kept in these: a few records of very different sizes, seldom changed,
//! so that walking over all of them is cheaper than any index.

use crate::sink::{copy, move_down};
use crate::store::Store;

/// The store is too small for one more record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoRoom;

/// Bytes that a record needs beside its data: length, owner, kind, tag.
pub const OVERHEAD: usize = 10;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'r> {
    /// Whose it is; any number the user of the records chose.
    pub owner: u32,
    /// What it is.
    pub kind: u8,
    /// A small changeable value.
    pub tag: u8,
    /// The bytes.
    pub data: &'r [u8],
    at: usize,
}

impl Record<'_> {
    /// Its place, for [`Records::set_tag`]; valid until a record is removed.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The bytes that it takes, with its [`OVERHEAD`].
    #[must_use]
    pub const fn size(&self) -> usize {
        OVERHEAD + self.data.len()
    }
}

/// Records in a [`Store`], oldest first.
#[derive(Debug)]
pub struct Records<'m> {
    store: Store<'m>,
    used: usize,
}

impl<'m> Records<'m> {
    /// No records, in `store`.
    #[must_use]
    pub const fn new(store: Store<'m>) -> Self {
        Records { store, used: 0 }
    }

    /// Bytes in use.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// The most bytes that can be in use.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.store.limit()
    }

    /// Appends a record whose data is `parts`, one after the other. On [`NoRoom`] nothing has changed.
    pub fn push(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoom> {
        let size = record_size(parts);
        if !self.store.reach(self.used.saturating_add(size)) {
            return Err(NoRoom);
        }
        let free = self.store.bytes_mut().get_mut(self.used..).ok_or(NoRoom)?;
        write_record(free, owner, kind, tag, parts)?;
        self.used += size;
        Ok(())
    }

    /// Begins a record at the end, without data, to be [extended](Records::extend); its place.
    pub fn begin(&mut self, owner: u32, kind: u8, tag: u8) -> Result<usize, NoRoom> {
        let at = self.used;
        self.push(owner, kind, tag, &[])?;
        Ok(at)
    }

    /// Appends to the data of the last record, which is at `at`. On [`NoRoom`] nothing has changed.
    pub fn extend(&mut self, at: usize, bytes: &[u8]) -> Result<(), NoRoom> {
        let end = self.used.saturating_add(bytes.len());
        if !self.store.reach(end) {
            return Err(NoRoom);
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

    /// The record at `at`.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Record<'_>> {
        Iter { live: self.live(), at }.next()
    }

    fn set_last_len(&mut self, at: usize) {
        let len = (self.used - at).saturating_sub(OVERHEAD) as u32;
        copy(self.store.bytes_mut().get_mut(at..).unwrap_or(&mut []), &len.to_le_bytes());
    }

    /// All records, oldest first.
    pub fn iter(&self) -> Iter<'_> {
        Iter { live: self.store.bytes().get(..self.used).unwrap_or(&[]), at: 0 }
    }

    /// The records from the one at `at` on.
    pub fn iter_from(&self, at: usize) -> Iter<'_> {
        Iter { live: self.live(), at }
    }

    /// Removes the records for which `which` says so; the others keep their order.
    pub fn remove(&mut self, mut which: impl FnMut(&Record<'_>) -> bool) {
        let (mut from, mut to) = (0, 0);
        while let Some(record) = (Iter { live: self.live(), at: from }).next() {
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

    /// Changes the tags of the records for which `tag` gives another one; whether there were any.
    pub fn retag(&mut self, tag: impl Fn(&Record<'_>) -> Option<u8>) -> bool {
        let (mut at, mut any) = (0, false);
        while let Some(record) = (Iter { live: self.live(), at }).next() {
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

    /// The records there are, to read, and the free bytes behind them, to write new ones. What was written comes to
    /// life with [`commit`](Records::commit).
    pub fn split(&mut self, spare: usize) -> (Iter<'_>, Draft<'_>) {
        // Whether there is as much as was wished for shows when it is written.
        let _ = self.store.reach(self.used.saturating_add(spare).min(self.store.limit()));
        match self.store.bytes_mut().split_at_mut_checked(self.used) {
            Some((live, free)) => (Iter { live, at: 0 }, Draft { free, used: 0 }),
            None => (Iter { live: &[], at: 0 }, Draft { free: &mut [], used: 0 }),
        }
    }

    /// Takes over `written` bytes of a [`Draft`].
    pub fn commit(&mut self, written: usize) {
        self.used = (self.used + written).min(self.store.bytes().len());
    }

    fn live(&self) -> &[u8] {
        self.store.bytes().get(..self.used).unwrap_or(&[])
    }
}

/// New records behind the ones there are.
#[derive(Debug)]
pub struct Draft<'r> {
    free: &'r mut [u8],
    used: usize,
}

impl Draft<'_> {
    /// Appends a record to the draft.
    pub fn push(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoom> {
        let free = self.free.get_mut(self.used..).ok_or(NoRoom)?;
        self.used += write_record(free, owner, kind, tag, parts)?;
        Ok(())
    }

    /// Bytes written, for [`Records::commit`].
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Drops what was written.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

/// What takes new records: all of them, or a draft behind those that are being read.
pub(crate) trait Keep {
    /// Appends a record.
    fn keep(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoom>;
    /// Drops what was kept for `owner` here.
    fn drop_all(&mut self, owner: u32);
}

impl Keep for Records<'_> {
    fn keep(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoom> {
        self.push(owner, kind, tag, parts)
    }

    fn drop_all(&mut self, owner: u32) {
        self.remove(|record| record.owner == owner);
    }
}

impl Keep for Draft<'_> {
    fn keep(&mut self, owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<(), NoRoom> {
        self.push(owner, kind, tag, parts)
    }

    fn drop_all(&mut self, _: u32) {
        self.clear();
    }
}

/// Walks over records.
#[derive(Clone, Debug)]
pub struct Iter<'r> {
    live: &'r [u8],
    at: usize,
}

const OWNER_AT: usize = 4;
const KIND_AT: usize = 8;
const TAG_AT: usize = 9;

impl<'r> Iterator for Iter<'r> {
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

fn write_record(free: &mut [u8], owner: u32, kind: u8, tag: u8, parts: &[&[u8]]) -> Result<usize, NoRoom> {
    let size = record_size(parts);
    let place = free.get_mut(..size).ok_or(NoRoom)?;
    let len = u32::try_from(size - OVERHEAD).map_err(|_| NoRoom)?;
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
        assert_eq!(records.push(4, 0, 0, &[&[0; 14]]), Err(NoRoom));
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
        let written = draft.used();
        assert_eq!(live.count(), 1);
        assert_eq!(records.iter().count(), 1);
        records.commit(written);
        assert_eq!(records.iter().last().unwrap().data, b"new");
    }
}
