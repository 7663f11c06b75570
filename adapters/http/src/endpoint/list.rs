//! Lists through the slots of a table. They need no memory of their own, and each step has the same cost for any
//! number of slots.

use mcp_sansio::memory::Slots;

/// The end of a list.
const END: u16 = u16::MAX;
/// In place of a neighbour: the slot is in no list.
const UNLISTED: u16 = u16::MAX - 1;

/// The neighbours of a slot in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    before: u16,
    next: u16,
}

impl Links {
    /// The links of a slot that is in no list.
    pub(crate) const NONE: Links = Links { before: UNLISTED, next: UNLISTED };

    pub(crate) const fn are_listed(self) -> bool {
        self.next != UNLISTED
    }

    pub(crate) fn before(self) -> Option<u16> {
        Some(self.before).filter(|slot| *slot < UNLISTED)
    }

    pub(crate) fn next(self) -> Option<u16> {
        Some(self.next).filter(|slot| *slot < UNLISTED)
    }
}

/// Returns the links of one list in a slot.
type LinksOf<T> = fn(&mut T) -> &mut Links;

/// A list of slots, doubly linked: the number of its first slot and of its last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u16,
    last: u16,
}

impl List {
    pub(crate) const EMPTY: List = List { first: END, last: END };

    pub(crate) fn first(self) -> Option<u16> {
        Some(self.first).filter(|slot| *slot != END)
    }

    pub(crate) fn last(self) -> Option<u16> {
        Some(self.last).filter(|slot| *slot != END)
    }

    /// Appends a slot that is in no list.
    pub(crate) fn push<T>(&mut self, slots: &mut [T], slot: u16, links: LinksOf<T>) {
        let Some(new) = slots.get_mut(usize::from(slot)) else { return };
        *links(new) = Links { before: self.last, next: END };
        match slots.get_mut(usize::from(self.last)).filter(|_| self.last != END) {
            Some(last) => links(last).next = slot,
            None => self.first = slot,
        }
        self.last = slot;
    }

    /// Removes a slot from the list, if it is in it.
    pub(crate) fn remove<T>(&mut self, slots: &mut [T], slot: u16, links: LinksOf<T>) {
        let Some(found) = slots.get_mut(usize::from(slot)) else { return };
        let Links { before, next } = core::mem::replace(links(found), Links::NONE);
        if next == UNLISTED {
            return;
        }
        match slots.get_mut(usize::from(before)).filter(|_| before != END) {
            Some(before) => links(before).next = next,
            None => self.first = next,
        }
        match slots.get_mut(usize::from(next)).filter(|_| next != END) {
            Some(next) => links(next).before = before,
            None => self.last = before,
        }
    }

    /// Moves a slot to the end, or appends it.
    pub(crate) fn touch<T>(&mut self, slots: &mut [T], slot: u16, links: LinksOf<T>) {
        if self.last != slot {
            self.remove(slots, slot, links);
            self.push(slots, slot, links);
        }
    }
}

/// The free slots of a table: those that were in use, and those never used.
#[derive(Debug)]
pub(crate) struct Free {
    used: List,
    /// Slots from this one on were never in use.
    fresh: u16,
}

impl Free {
    pub(crate) const ALL: Free = Free { used: List::EMPTY, fresh: 0 };

    pub(crate) fn has_any<T>(&self, table: &Slots<'_, T>) -> bool {
        self.used.first().is_some() || usize::from(self.fresh) < table.limit().min(UNLISTED.into())
    }

    /// Takes a free slot. If all are in use and the table may grow, adds `new`.
    pub(crate) fn take<T>(&mut self, table: &mut Slots<'_, T>, new: T, links: LinksOf<T>) -> Option<u16> {
        if let Some(slot) = self.used.first() {
            self.used.remove(table.as_mut_slice(), slot, links);
            return Some(slot);
        }
        let slot = self.fresh;
        if slot == UNLISTED || usize::from(slot) == table.as_slice().len() && table.push(new).is_none() {
            return None;
        }
        self.fresh += 1;
        Some(slot)
    }

    /// Gives a slot back. It must be in no list through these links.
    pub(crate) fn give_back<T>(&mut self, slots: &mut [T], slot: u16, links: LinksOf<T>) {
        self.used.push(slots, slot, links);
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    const NEW: Links = Links::NONE;

    fn own(links: &mut Links) -> &mut Links {
        links
    }

    /// Slots are used in their order, and then those that were given back, the oldest first.
    #[test]
    fn free_slots_are_taken_in_their_order() {
        let mut table = Slots::growing(3);
        let mut free = Free::ALL;
        assert!(free.has_any(&table));
        let taken = [(); 4].map(|()| free.take(&mut table, NEW, own));
        assert_eq!(taken, [Some(0), Some(1), Some(2), None]);
        assert!(!free.has_any(&table));
        for slot in [2, 0] {
            free.give_back(table.as_mut_slice(), slot, own);
            assert!(free.has_any(&table));
        }
        assert_eq!([(); 3].map(|()| free.take(&mut table, NEW, own)), [Some(2), Some(0), None]);
        assert!(!free.has_any(&table));
    }

    /// Two numbers stand for no slot.
    #[test]
    fn a_table_has_as_many_slots_as_there_are_numbers() {
        let mut table = Slots::growing(usize::MAX);
        let mut free = Free::ALL;
        for slot in 0..UNLISTED {
            assert!(free.has_any(&table));
            assert_eq!(free.take(&mut table, NEW, own), Some(slot));
        }
        assert_eq!((free.take(&mut table, NEW, own), free.has_any(&table)), (None, false));
        free.give_back(table.as_mut_slice(), 7, own);
        assert_eq!(free.take(&mut table, NEW, own), Some(7));
    }

    /// A list against a plain one, with slots that come and go at both ends and in the middle.
    #[test]
    fn a_list_is_in_the_order_of_its_changes() {
        let mut slots = [NEW; 6];
        let (mut list, mut plain) = (List::EMPTY, alloc::vec::Vec::<u16>::new());
        let mut dice = 5_u32;
        for _ in 0..2_000 {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = (dice >> 16) as u16 % 6;
            match (plain.contains(&slot), (dice >> 24) % 3) {
                (_, 0) => {
                    list.remove(&mut slots, slot, own);
                    plain.retain(|known| *known != slot);
                }
                (false, 1) => {
                    list.push(&mut slots, slot, own);
                    plain.push(slot);
                }
                _ => {
                    list.touch(&mut slots, slot, own);
                    plain.retain(|known| *known != slot);
                    plain.push(slot);
                }
            }
            let forwards = core::iter::successors(list.first(), |slot| slots[usize::from(*slot)].next());
            assert_eq!(forwards.collect::<alloc::vec::Vec<_>>(), plain);
            let backwards = core::iter::successors(list.last(), |slot| slots[usize::from(*slot)].before());
            assert!(backwards.eq(plain.iter().rev().copied()));
            assert!((0..6).all(|slot| slots[usize::from(slot)].are_listed() == plain.contains(&slot)));
        }
        // A slot that does not exist is in no list.
        let before = (list.first(), list.last());
        list.push(&mut slots, 6, own);
        list.remove(&mut slots, 6, own);
        assert_eq!((list.first(), list.last()), before);
    }
}
