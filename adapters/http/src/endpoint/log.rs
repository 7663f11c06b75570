//! The log of event streams: messages that were not sent, or that a client may ask for again.
//!
//! Its memory is cut into blocks. Each stream has a chain of blocks of its own. So work for one stream costs the
//! same for any amount of other streams' data, and forgetting moves no bytes.
//!
//! A chain holds records in order: first those that were sent and are kept for clients that come back, then those
//! that were not sent. A record is a message, or one window of a message.

use mcp_sansio::memory::Store;
use mcp_sansio::sink::copy;

use super::list::{Links, List};

/// Bytes of a block.
const BLOCK: usize = 64;
/// Bytes of a block for records. The other bytes are links to the next block and the one before.
const DATA: usize = BLOCK - LINKS;
const LINKS: usize = 8;
const NEXT: usize = 0;
const BEFORE: usize = 4;
/// In place of a number: no block.
const NONE: u32 = u32::MAX;

/// Bytes of a record before its data: its size and its tag.
pub(crate) const HEAD: usize = 5;

/// A place in a chain: before that byte of that block. The place after the last byte of a block equals the place
/// before the first byte of the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    block: u32,
    at: u32,
}

impl Spot {
    const NOWHERE: Spot = Spot { block: NONE, at: 0 };
}

/// The records of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    start: Spot,
    /// The first record that was not sent.
    pub(crate) read: Spot,
    /// The first unsent byte of that record, if a part of it was sent.
    pub(crate) part: Spot,
    /// The place after the last record.
    pub(crate) end: Spot,
    /// Bytes of all records.
    len: usize,
    /// Bytes of the records before `read`.
    sent: usize,
    /// The number of the event at `start`, the oldest in the log.
    pub(crate) first: u32,
    /// Links of the intrusive list of streams with sent records.
    kept: Links,
}

/// A slot with a chain: an event stream.
pub(crate) trait HasChain {
    fn chain(&self) -> &Chain;
    fn chain_mut(&mut self) -> &mut Chain;
}

fn kept(stream: &mut impl HasChain) -> &mut Links {
    &mut stream.chain_mut().kept
}

impl Chain {
    pub(crate) const EMPTY: Chain = Chain {
        start: Spot::NOWHERE,
        read: Spot::NOWHERE,
        part: Spot::NOWHERE,
        end: Spot::NOWHERE,
        len: 0,
        sent: 0,
        first: 1,
        kept: Links::NONE,
    };

    /// Returns the number of unsent bytes.
    pub(crate) const fn unsent(&self) -> usize {
        self.len - self.sent
    }

    const fn blocks(&self) -> usize {
        if self.len == 0 { 0 } else { (self.start.at as usize + self.len).div_ceil(DATA) }
    }

    /// Returns the number of blocks that are free when all sent records are forgotten.
    const fn spare(&self) -> usize {
        if self.sent == self.len { self.blocks() } else { (self.start.at as usize + self.sent) / DATA }
    }

    /// Returns the number of free bytes in the last block.
    const fn tail(&self) -> usize {
        if self.len == 0 { 0 } else { DATA - self.end.at as usize }
    }

    fn move_block(&mut self, from: u32, to: u32) {
        for spot in [&mut self.start, &mut self.read, &mut self.part, &mut self.end] {
            if spot.block == from {
                spot.block = to;
            }
        }
    }
}

/// The head of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Length in bytes, the head included.
    pub(crate) size: usize,
    pub(crate) tag: u8,
}

/// The log of all streams.
#[derive(Debug)]
pub(crate) struct Log<'m> {
    store: Store<'m>,
    /// Largest number of blocks.
    total: usize,
    /// Number of blocks in chains.
    used: usize,
    /// Blocks from this one on were never used.
    fresh: u32,
    /// The first free block of those that were used.
    free: u32,
    /// Number of blocks that are free when all sent records of all streams are forgotten.
    spare: usize,
    /// Bytes of sent records.
    sent: usize,
    /// The streams with sent records, by the time of their first one.
    kept: List,
    /// Number of bytes that one stream may have unsent, so that a slow reader does not take the log from others.
    pub(crate) share: usize,
    /// A share that each stream can have at the same time: it is never less because of others.
    pub(crate) equal: usize,
    /// Number of bytes that may stay in the log after they were sent.
    pub(crate) keep: usize,
    /// Number of unsent events of one stream, beyond which no further one is begun.
    pub(crate) unread: usize,
    /// Number of records and blocks that were read.
    #[cfg(test)]
    pub(crate) steps: core::cell::Cell<usize>,
}

impl<'m> Log<'m> {
    pub(crate) fn new(store: Store<'m>, share: usize, keep: usize, unread: usize) -> Self {
        Log {
            total: (store.limit() / BLOCK).min(NONE as usize),
            store,
            used: 0,
            fresh: 0,
            free: NONE,
            spare: 0,
            sent: 0,
            kept: List::EMPTY,
            share,
            equal: 0,
            keep,
            unread,
            #[cfg(test)]
            steps: core::cell::Cell::new(0),
        }
    }

    /// Returns the largest number of bytes of records.
    pub(crate) const fn capacity(&self) -> usize {
        self.total * DATA
    }

    /// Returns the number of bytes that can be appended for a stream. Only unsent records count, since sent ones
    /// make room.
    pub(crate) fn room(&self, chain: &Chain) -> usize {
        self.room_in(chain, self.available() - chain.spare())
    }

    /// Returns the room for a stream, with this number of blocks beside its own.
    fn room_in(&self, chain: &Chain, blocks: usize) -> usize {
        // Its own last block stays while a byte is in it.
        let own = chain.spare().min(chain.blocks().saturating_sub(1));
        let share = self.share_of(blocks + chain.blocks()).saturating_sub(chain.unsent());
        ((blocks + own) * DATA + chain.tail()).min(share)
    }

    /// Returns the number of bytes that a stream may have unsent while the others leave it this number of blocks: a
    /// quarter of the share beside a half of the log, a sixteenth beside a quarter, and so on.
    fn share_of(&self, left: usize) -> usize {
        if self.share <= self.equal {
            return self.share;
        }
        // Each half of the rest takes twice the streams of the half before: a thousand stalled ones leave some.
        let halvings = (self.total / left.max(1)).checked_ilog2().unwrap_or(0);
        self.share.min(self.capacity()).checked_shr(2 * halvings).unwrap_or(0)
    }

    /// Returns the number of blocks for all streams that are free when all sent records are forgotten.
    pub(crate) const fn available(&self) -> usize {
        self.total - self.used + self.spare
    }

    /// Returns whether there is more room for a stream once the others are read.
    pub(crate) fn is_taken_by_others(&self, chain: &Chain) -> bool {
        self.room(chain) < self.room_in(chain, self.total - chain.blocks())
    }

    /// Appends bytes to a stream's records. If there is no room, returns `false` and appends nothing.
    pub(crate) fn append(&mut self, streams: &mut [impl HasChain], slot: u16, mut bytes: &[u8]) -> bool {
        if !self.reserve(streams, slot, bytes.len()) {
            return false;
        }
        let Some(chain) = streams.get_mut(usize::from(slot)).map(HasChain::chain_mut) else { return false };
        self.spare -= chain.spare();
        while !bytes.is_empty() {
            if chain.tail() == 0 && !self.lengthen(chain) {
                break;
            }
            let (now, rest) = bytes.split_at_checked(chain.tail_of(bytes.len())).unwrap_or((bytes, &[]));
            self.write(chain.end, now);
            chain.end.at += now.len() as u32;
            chain.len += now.len();
            bytes = rest;
        }
        self.spare += chain.spare();
        true
    }

    /// Appends the head of a record and returns its place.
    pub(crate) fn open(&mut self, streams: &mut [impl HasChain], slot: u16, tag: u8) -> Option<Spot> {
        if !self.reserve(streams, slot, HEAD) {
            return None;
        }
        let before = streams.get(usize::from(slot)).map(|stream| stream.chain().end)?;
        let appended = self.append(streams, slot, &[0, 0, 0, 0, tag]);
        let chain = streams.get(usize::from(slot)).map(|stream| *stream.chain())?;
        let place = if before == Spot::NOWHERE { chain.start } else { self.normal(before) };
        appended.then_some(place)
    }

    /// Writes the head of a record.
    pub(crate) fn set_head(&mut self, spot: Spot, record: Record) {
        let [a, b, c, d] = (record.size as u32).to_le_bytes();
        self.write(spot, &[a, b, c, d, record.tag]);
    }

    /// Reads the head of a record.
    pub(crate) fn record(&self, spot: Spot) -> Record {
        self.step();
        let mut head = [0; HEAD];
        let (mut spot, mut filled) = (spot, 0);
        while let Some(piece) = head.get_mut(filled..).filter(|piece| !piece.is_empty()) {
            let (bytes, next) = self.piece(spot, piece.len());
            if bytes.is_empty() {
                break;
            }
            copy(piece, bytes);
            filled += bytes.len();
            spot = next;
        }
        let [a, b, c, d, tag] = head;
        Record { size: u32::from_le_bytes([a, b, c, d]) as usize, tag }
    }

    /// Returns at most `len` bytes after a place that are in one block, and the place after them.
    pub(crate) fn piece(&self, spot: Spot, len: usize) -> (&[u8], Spot) {
        let spot = self.normal(spot);
        let len = len.min(DATA - spot.at as usize);
        let bytes = self.store.bytes().get(place_of(spot.block, LINKS + spot.at as usize)..);
        let bytes = bytes.and_then(|bytes| bytes.get(..len)).unwrap_or(&[]);
        (bytes, Spot { at: spot.at + bytes.len() as u32, ..spot })
    }

    /// Returns the place `bytes` bytes later.
    pub(crate) fn advance(&self, spot: Spot, mut bytes: usize) -> Spot {
        let mut spot = spot;
        while bytes > DATA - spot.at as usize {
            bytes -= DATA - spot.at as usize;
            spot = Spot { block: self.link(spot.block, NEXT), at: 0 };
            if spot.block == NONE {
                return spot;
            }
        }
        Spot { at: spot.at + bytes as u32, ..spot }
    }

    /// Returns the place at which the record that is being sent continues.
    pub(crate) fn part(&self, chain: &Chain, offset: usize) -> Spot {
        if offset == 0 { self.advance(chain.read, HEAD) } else { chain.part }
    }

    /// Notes that the current record was sent. Keeps it, or forgets it and all before it: a client cannot resume
    /// before a missing record.
    pub(crate) fn set_sent(&mut self, streams: &mut [impl HasChain], slot: u16, event: u32, keep: bool) {
        let Some(chain) = streams.get_mut(usize::from(slot)).map(HasChain::chain_mut) else { return };
        let size = self.record(chain.read).size.min(chain.unsent());
        self.spare -= chain.spare();
        (chain.read, chain.sent, self.sent) = (chain.part, chain.sent + size, self.sent + size);
        self.spare += chain.spare();
        if keep {
            self.enlist(streams, slot);
            while self.sent > self.keep && self.evict(streams) {}
            return;
        }
        let sent = chain.sent;
        self.drop_front(streams, slot, sent, event + 1);
    }

    /// Sends events from `event` on next, most of them again. They are not forgotten before.
    pub(crate) fn seek(&mut self, streams: &mut [impl HasChain], slot: u16, event: u32) {
        let Some(chain) = streams.get_mut(usize::from(slot)).map(HasChain::chain_mut) else { return };
        let (mut spot, mut before) = (chain.start, 0);
        for _ in chain.first..event {
            let size = self.record(spot).size;
            spot = self.advance(spot, size);
            before += size;
        }
        self.spare -= chain.spare();
        self.sent = self.sent - chain.sent + before;
        (chain.read, chain.sent) = (spot, before);
        self.spare += chain.spare();
        match before {
            0 => self.kept.remove(streams, slot, kept),
            _ => self.enlist(streams, slot),
        }
        while self.sent > self.keep && self.evict(streams) {}
    }

    /// Takes back the last `bytes` that were appended for a stream. None of them was sent.
    pub(crate) fn cut(&mut self, chain: &mut Chain, bytes: usize) {
        self.spare -= chain.spare();
        let mut bytes = bytes.min(chain.unsent());
        if bytes == chain.len {
            self.give_back(chain);
        } else {
            chain.len -= bytes;
        }
        while chain.len > 0 && bytes > 0 {
            let now = bytes.min(chain.end.at as usize);
            chain.end.at -= now as u32;
            bytes -= now;
            if chain.end.at == 0 {
                let before = self.link(chain.end.block, BEFORE);
                self.free_block(chain.end.block);
                self.set_link(before, NEXT, NONE);
                chain.end = Spot { block: before, at: DATA as u32 };
            }
        }
        self.spare += chain.spare();
    }

    /// Forgets all records of a stream.
    pub(crate) fn forget(&mut self, streams: &mut [impl HasChain], slot: u16) {
        self.kept.remove(streams, slot, kept);
        let Some(chain) = streams.get_mut(usize::from(slot)).map(HasChain::chain_mut) else { return };
        self.spare -= chain.spare();
        self.sent -= chain.sent;
        self.give_back(chain);
        *chain = Chain::EMPTY;
    }

    /// Gives memory back to the allocator if little of it is used. Costs no more than the records forgotten since
    /// the last call.
    pub(crate) fn release(&mut self, streams: &mut [impl HasChain]) {
        let little = self.fresh as usize > LITTLE.max(streams.len()) && self.used < self.fresh as usize / 4;
        if !cfg!(feature = "alloc") || !little {
            return;
        }
        // All blocks that stay move to the front.
        let end = self.used as u32;
        let (mut free, mut next) = (core::mem::replace(&mut self.free, NONE), NONE);
        while free != NONE {
            let after = self.link(free, NEXT);
            if free < end {
                self.set_link(free, NEXT, next);
                next = free;
            }
            free = after;
        }
        for chain in streams.iter_mut().map(HasChain::chain_mut) {
            let mut block = chain.start.block;
            while block != NONE {
                if block >= end {
                    let after = self.link(next, NEXT);
                    self.move_block(chain, block, next);
                    (block, next) = (next, after);
                }
                block = self.link(block, NEXT);
            }
        }
        self.fresh = end;
        self.store.shrink(end as usize * BLOCK);
    }

    /// Forgets sent records until `bytes` bytes can be appended.
    fn reserve(&mut self, streams: &mut [impl HasChain], slot: u16, bytes: usize) -> bool {
        loop {
            let Some(chain) = streams.get(usize::from(slot)).map(HasChain::chain) else { return false };
            if bytes.saturating_sub(chain.tail()).div_ceil(DATA) <= self.total - self.used {
                return true;
            }
            if !self.evict(streams) {
                return false;
            }
        }
    }

    /// Forgets one sent record of the stream that has had some for the longest time.
    fn evict(&mut self, streams: &mut [impl HasChain]) -> bool {
        let Some(slot) = self.kept.first() else { return false };
        let Some(chain) = streams.get(usize::from(slot)).map(HasChain::chain) else { return false };
        let (size, next) = (self.record(chain.start).size.clamp(1, chain.sent.max(1)), chain.first + 1);
        self.drop_front(streams, slot, size, next);
        true
    }

    /// Forgets `bytes` bytes of sent records; `first` is the number of the event after them.
    fn drop_front(&mut self, streams: &mut [impl HasChain], slot: u16, bytes: usize, first: u32) {
        let Some(chain) = streams.get_mut(usize::from(slot)).map(HasChain::chain_mut) else { return };
        let bytes = bytes.min(chain.sent);
        self.spare -= chain.spare();
        (chain.len, chain.sent, chain.first) = (chain.len - bytes, chain.sent - bytes, first);
        self.sent -= bytes;
        if chain.len == 0 {
            chain.len = bytes;
            self.give_back(chain);
        } else {
            let mut at = chain.start.at as usize + bytes;
            while at >= DATA {
                let next = self.link(chain.start.block, NEXT);
                self.free_block(chain.start.block);
                (chain.start.block, at) = (next, at - DATA);
            }
            chain.start.at = at as u32;
            if chain.sent == 0 {
                chain.read = chain.start;
            }
        }
        self.spare += chain.spare();
        if chain.sent == 0 {
            self.kept.remove(streams, slot, kept);
        }
    }

    /// Puts a stream at the end of the list of those with sent records, if it is not in the list.
    fn enlist(&mut self, streams: &mut [impl HasChain], slot: u16) {
        if streams.get(usize::from(slot)).is_some_and(|stream| !stream.chain().kept.are_listed()) {
            self.kept.push(streams, slot, kept);
        }
    }

    /// Returns the same place, not after the last byte of a block if there is a next block.
    fn normal(&self, spot: Spot) -> Spot {
        if (spot.at as usize) < DATA {
            return spot;
        }
        Spot { block: self.link(spot.block, NEXT), at: 0 }
    }

    /// Adds a block to a chain.
    fn lengthen(&mut self, chain: &mut Chain) -> bool {
        let Some(block) = self.take_block() else { return false };
        self.set_link(block, NEXT, NONE);
        self.set_link(block, BEFORE, chain.end.block);
        if chain.len == 0 {
            chain.start = Spot { block, at: 0 };
            chain.read = chain.start;
        } else {
            self.set_link(chain.end.block, NEXT, block);
        }
        chain.end = Spot { block, at: 0 };
        true
    }

    fn take_block(&mut self) -> Option<u32> {
        let block = if self.free == NONE { self.fresh } else { self.free };
        if self.free != NONE {
            self.free = self.link(block, NEXT);
        } else if block as usize >= self.total || !self.store.reach((block as usize + 1) * BLOCK) {
            return None;
        } else {
            self.fresh += 1;
        }
        self.used += 1;
        Some(block)
    }

    fn free_block(&mut self, block: u32) {
        self.set_link(block, NEXT, self.free);
        self.free = block;
        self.used -= 1;
    }

    /// Frees all blocks of a chain. Its `len` gives their number.
    fn give_back(&mut self, chain: &mut Chain) {
        if chain.start.block != NONE {
            // `end` is in the last one.
            self.set_link(chain.end.block, NEXT, self.free);
            self.free = chain.start.block;
            self.used -= chain.blocks();
        }
        (chain.start, chain.read, chain.part, chain.end) = (Spot::NOWHERE, Spot::NOWHERE, Spot::NOWHERE, Spot::NOWHERE);
        (chain.len, chain.sent) = (0, 0);
    }

    fn move_block(&mut self, chain: &mut Chain, from: u32, to: u32) {
        if let Some((front, back)) = self.store.bytes_mut().split_at_mut_checked(place_of(from, 0)) {
            let block = back.get(..BLOCK).unwrap_or(&[]);
            copy(front.get_mut(place_of(to, 0)..).unwrap_or(&mut []), block);
        }
        chain.move_block(from, to);
        let (before, next) = (self.link(to, BEFORE), self.link(to, NEXT));
        if chain.start.block != to {
            self.set_link(before, NEXT, to);
        }
        if next != NONE {
            self.set_link(next, BEFORE, to);
        }
    }

    fn link(&self, block: u32, which: usize) -> u32 {
        self.step();
        let bytes = self.store.bytes().get(place_of(block, which)..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(NONE, |bytes| u32::from_le_bytes(*bytes))
    }

    fn set_link(&mut self, block: u32, which: usize, to: u32) {
        if let Some(place) =
            self.store.bytes_mut().get_mut(place_of(block, which)..).and_then(|bytes| bytes.first_chunk_mut())
        {
            *place = to.to_le_bytes();
        }
    }

    /// Overwrites bytes of a chain.
    fn write(&mut self, spot: Spot, bytes: &[u8]) {
        let (mut spot, mut bytes) = (spot, bytes);
        while !bytes.is_empty() {
            spot = self.normal(spot);
            let (now, rest) = bytes.split_at_checked(DATA - spot.at as usize).unwrap_or((bytes, &[]));
            let place = self.store.bytes_mut().get_mut(place_of(spot.block, LINKS + spot.at as usize)..);
            copy(place.unwrap_or(&mut []), now);
            spot.at += now.len() as u32;
            bytes = rest;
        }
    }

    #[cfg(test)]
    fn step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "counts in tests")]
    const fn step(&self) {}
}

/// Returns the place of a byte of a block, beyond all memory for [`NONE`].
const fn place_of(block: u32, at: usize) -> usize {
    (block as usize).saturating_mul(BLOCK).saturating_add(at)
}

impl Chain {
    /// Returns how many of `bytes` the last block takes.
    fn tail_of(&self, bytes: usize) -> usize {
        (DATA - self.end.at as usize).min(bytes)
    }
}

/// Number of blocks that are not given back: 64 KiB.
const LITTLE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::events::{StreamOut, Written, write_events};
    use super::super::stream::Stream;
    use super::*;
    use mcp_sansio::FullError;
    use mcp_sansio::sink::{MessageHead, Out, Sink};

    const TEXT: &[u8] = &[b'x'; 70];

    /// A sink with room for this number of bytes.
    struct Room(usize);

    impl Sink for Room {
        fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(FullError::Now)?;
            Ok(())
        }
        fn room(&self) -> usize {
            self.0
        }
    }

    fn stream(resumable: bool) -> Stream {
        let mut stream = Stream::FREE;
        stream.resumable = resumable;
        stream
    }

    fn say(log: &mut Log<'_>, streams: &mut [Stream], slot: u16) -> Result<(), FullError> {
        say_text(log, streams, slot, TEXT)
    }

    fn say_text(log: &mut Log<'_>, streams: &mut [Stream], slot: u16, text: &[u8]) -> Result<(), FullError> {
        let mut out = StreamOut::new(log, streams, slot, false);
        out.begin(MessageHead::Result)?;
        out.put(text)?;
        out.end();
        Ok(())
    }

    fn read(log: &mut Log<'_>, streams: &mut [Stream], slot: u16) {
        while write_events(streams, slot, log, &mut Room(1000)) == Written::Full {}
    }

    /// Returns the steps for `events` events on one stream: written, read and, if possible, read again, while
    /// another stream has a backlog.
    fn steps(events: usize, backlog: usize, resumable: bool) -> usize {
        let mut bytes = std::vec![0; 8 << 20];
        let mut log = Log::new(Store::from(&mut bytes[..]), 4 << 20, 4 << 20, usize::MAX);
        let mut streams = [stream(resumable); 2];
        for _ in 0..backlog {
            say(&mut log, &mut streams, 1).unwrap();
        }
        log.steps.set(0);
        for _ in 0..events {
            say(&mut log, &mut streams, 0).unwrap();
        }
        read(&mut log, &mut streams, 0);
        if resumable {
            log.seek(&mut streams, 0, 1);
            streams[0].cursor = 1;
            read(&mut log, &mut streams, 0);
        }
        log.forget(&mut streams, 0);
        assert_eq!(log.used, streams[1].chain.blocks());
        log.steps.get()
    }

    #[test]
    fn work_grows_with_the_events_of_the_stream_alone() {
        for resumable in [false, true] {
            let (once, twice) = (steps(5_000, 0, resumable), steps(10_000, 0, resumable));
            assert!(twice <= once * 2 + 100, "{once} steps for 5,000 events, {twice} for 10,000");
            assert!(once <= 5_000 * 40, "{once} steps");
            let beside = steps(5_000, 10_000, resumable);
            assert!(beside <= once + 100, "{once} steps alone, {beside} beside a backlog");
        }
    }

    /// Stalled streams leave room for others. A lone stream has its whole share, and so has each once the others were
    /// read.
    #[test]
    fn stalled_streams_leave_room() {
        let (total, share) = (256 << 10, 16 << 10);
        let mut bytes = std::vec![0; total];
        let mut log = Log::new(Store::from(&mut bytes[..]), share, 0, usize::MAX);
        let mut streams = std::vec![stream(false); 1001];
        assert_eq!(log.room(&streams[0].chain), share);
        for (stalled, least) in [(1, share), (8, share / 4), (16, share / 4), (200, share / 256)] {
            for slot in 1..=stalled {
                while say(&mut log, &mut streams, slot).is_ok() {}
            }
            let room = log.room(&streams[0].chain);
            assert!(room >= least, "{room} of {least} bytes beside {stalled} streams");
            assert!(room == share || log.is_taken_by_others(&streams[0].chain));
        }
        for slot in 1..=1000 {
            while say_text(&mut log, &mut streams, slot, b"x").is_ok() {}
        }
        assert!(log.available() * DATA > share / 8, "{} blocks", log.available());
        for slot in 1..=1000 {
            log.forget(&mut streams, slot);
        }
        assert_eq!(log.room(&streams[0].chain), share);
    }

    /// Stalled streams take nothing of the equal shares of others.
    #[test]
    fn equal_shares_stay_whole() {
        let mut bytes = [0; 64 * BLOCK];
        let mut log = Log::new(Store::from(&mut bytes[..]), 16 * DATA, 0, usize::MAX);
        log.equal = 16 * DATA;
        let mut streams = [stream(false); 4];
        for slot in 0..4 {
            assert_eq!(log.room(&streams[usize::from(slot)].chain), 16 * DATA);
            say_text(&mut log, &mut streams, slot, &TEXT.repeat(20)[..16 * DATA - HEAD]).unwrap();
        }
        assert_eq!(log.available(), 0);
    }

    /// Chains grow, shrink at both ends, are forgotten and make room for each other. No block is lost or counted
    /// twice.
    #[test]
    fn every_block_is_somewhere() {
        let mut bytes = [0; 40 * BLOCK];
        let mut log = Log::new(Store::from(&mut bytes[..]), 20 * BLOCK, 12 * BLOCK, usize::MAX);
        let mut streams = [stream(true); 4];
        streams[3].resumable = false;
        let mut dice = 7_u32;
        for _ in 0..20_000 {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (slot, what) = ((dice >> 16) as u16 % 4, (dice >> 20) % 16);
            match what {
                0..=7 => {
                    let room = log.room(&streams[usize::from(slot)].chain);
                    let mut out = StreamOut::new(&mut log, &mut streams, slot, false);
                    let mark = out.mark();
                    if out.begin(MessageHead::Result).is_ok() {
                        let len = room - HEAD - (dice >> 24) as usize % (room - HEAD).clamp(1, 99);
                        out.put(&TEXT.repeat(20)[..len]).unwrap();
                        out.end();
                    }
                    if what > 5 {
                        out.roll_back(mark);
                        assert_eq!(out.mark(), mark);
                    }
                }
                8..=12 => {
                    let _ = write_events(&mut streams, slot, &mut log, &mut Room((dice >> 24) as usize));
                }
                13 => log.forget(&mut streams, slot),
                14 if streams[usize::from(slot)].resumable => {
                    let stream = &mut streams[usize::from(slot)];
                    let event = stream.chain.first;
                    (stream.cursor, stream.offset, stream.head) = (event, 0, 0);
                    log.seek(&mut streams, slot, event);
                }
                _ => {}
            }
            if what == 13 {
                let stream = &mut streams[usize::from(slot)];
                (stream.cursor, stream.next_event, stream.offset, stream.head) = (1, 1, 0, 0);
            }
            let sum = |of: fn(&Chain) -> usize| streams.iter().map(|stream| of(&stream.chain)).sum::<usize>();
            assert_eq!((log.used, log.spare), (sum(Chain::blocks), sum(Chain::spare)));
            assert_eq!(log.sent, sum(|chain| chain.sent));
            assert!(log.sent <= log.keep);
            let mut free = 0;
            let mut at = log.free;
            while at != NONE {
                (at, free) = (log.link(at, NEXT), free + 1);
            }
            assert_eq!(free + log.used, log.fresh as usize);
        }
    }

    /// As much as may be kept is kept, of a stream that can be resumed; of others nothing.
    #[test]
    fn sent_records_are_kept_up_to_the_limit() {
        let mut bytes = [0; 40 * BLOCK];
        let keep = 2 * (HEAD + TEXT.len());
        let mut log = Log::new(Store::from(&mut bytes[..]), 20 * BLOCK, keep, usize::MAX);
        let mut streams = [stream(true), stream(false)];
        for (sent, first) in [(1, 1), (2, 1), (3, 2)] {
            for slot in [0, 1] {
                say(&mut log, &mut streams, slot).unwrap();
                read(&mut log, &mut streams, slot);
            }
            assert_eq!(streams[0].chain.first, first, "{sent} events");
            assert_eq!((streams[1].chain.first, streams[1].chain.blocks()), (sent + 1, 0));
        }
        assert_eq!(log.sent, keep);
    }

    /// Returns the text of message `n` of a stream.
    #[cfg(feature = "alloc")]
    fn text_of(slot: u16, n: u32) -> std::string::String {
        std::format!("message {n:06} of stream {slot}, which is longer than one block of the log")
    }

    /// Reads the messages of a stream, the last of which is `newest`, until `left` are unread. All are as written.
    #[cfg(feature = "alloc")]
    fn read_down(log: &mut Log<'_>, streams: &mut [Stream], slot: u16, newest: u32, left: u32) {
        let of = |streams: &[Stream]| streams[usize::from(slot)].unread() as u32;
        while of(streams) > left {
            let n = newest + 1 - of(streams);
            let mut bytes = [0; 200];
            let mut out = mcp_sansio::sink::LineSink::new(mcp_sansio::sink::SliceStorage::new(&mut bytes));
            let _ = write_events(streams, slot, log, &mut out);
            let text = std::str::from_utf8(out.pending()).unwrap();
            assert!(text.contains(&text_of(slot, n)), "message {n} of stream {slot} is {text}");
            // A part of the next one may have been written: a client that comes back gets it from its beginning.
            let stream = &mut streams[usize::from(slot)];
            (stream.offset, stream.head) = (0, 0);
        }
    }

    /// The blocks of several streams move to the front, with what is in them; the other blocks go.
    #[cfg(feature = "alloc")]
    #[test]
    fn memory_is_given_back() {
        const MANY: u32 = 500;
        let mut log = Log::new(Store::growing(1 << 20), 1 << 20, 1 << 20, usize::MAX);
        let mut streams = [stream(false); 4];
        for slot in [0, 1, 2, 0, 1, 2] {
            for _ in 0..MANY {
                let n = streams[usize::from(slot)].unread() as u32;
                say_text(&mut log, &mut streams, slot, text_of(slot, n).as_bytes()).unwrap();
            }
        }
        let full = log.store.bytes().len();
        assert!(full > 4 * LITTLE * BLOCK, "{full}");
        [0, 2].into_iter().for_each(|slot| log.forget(&mut streams, slot));
        log.release(&mut streams);
        assert_eq!(log.store.bytes().len(), full, "a third is in use");
        // Two streams that end in blocks which others had before, between blocks that stay free.
        for n in 0..20 {
            say_text(&mut log, &mut streams, 3, text_of(3, n).as_bytes()).unwrap();
            say_text(&mut log, &mut streams, 1, text_of(1, 2 * MANY + n).as_bytes()).unwrap();
        }
        read_down(&mut log, &mut streams, 1, 2 * MANY + 19, 60);
        log.release(&mut streams);
        assert_eq!(log.store.bytes().len(), log.used * BLOCK, "what is left was moved to the front");
        assert_eq!(log.used, streams[1].chain.blocks() + streams[3].chain.blocks());
        // They continue, in blocks behind those.
        for n in 20..30 {
            say_text(&mut log, &mut streams, 3, text_of(3, n).as_bytes()).unwrap();
            say_text(&mut log, &mut streams, 1, text_of(1, 2 * MANY + n).as_bytes()).unwrap();
        }
        assert_eq!(log.fresh as usize, log.used, "no block is skipped");
        read_down(&mut log, &mut streams, 3, 29, 0);
        read_down(&mut log, &mut streams, 1, 2 * MANY + 29, 0);
        assert_eq!(log.used, 0);
    }

    /// Memory that a backlog took is given back with the time, though its stream goes on.
    #[cfg(feature = "alloc")]
    #[test]
    fn memory_is_given_back_while_streams_are_open() {
        use crate::endpoint::{App, Endpoint, EndpointConfig, EndpointLimits, stream::Asker};
        use mcp_sansio::server::{MessageLimits, Scope, Server};
        let config = EndpointConfig::DEFAULT;
        let mut endpoint =
            Endpoint::growing(config, Server::growing(MessageLimits::default()), EndpointLimits::default());
        let asker =
            Asker { scope: Scope(1), session: None, resumable: false, primed: false, modern: true, listens: false };
        let slot = endpoint.reserve_stream(asker, 0).unwrap();
        for _ in 0..3 * LITTLE {
            let (log, slots) = endpoint.streams.log_mut();
            say(log, slots, slot).unwrap();
        }
        let (log, slots) = endpoint.streams.log_mut();
        read(log, slots, slot);
        assert!(endpoint.streams.log.store.bytes().len() > LITTLE * BLOCK);
        let service = mcp_sansio::service::Service::<()>::new("test", "1");
        endpoint.expire(&mut App::new(&service, &mut ()), 1);
        assert_eq!((endpoint.streams.log.store.bytes().len(), endpoint.load().2), (0, 1));
    }
}
