//! Wakers that are woken after the lock is released.

use std::task::Waker;

/// A list of wakers that allocates only for more than two, which a call never has.
#[derive(Default)]
pub(super) struct Wakes {
    first: [Option<Waker>; 2],
    more: Vec<Waker>,
}

impl Wakes {
    pub(super) fn wake(self) {
        self.first.into_iter().flatten().chain(self.more).for_each(Waker::wake);
    }
}

impl Extend<Waker> for Wakes {
    fn extend<T: IntoIterator<Item = Waker>>(&mut self, wakers: T) {
        for waker in wakers {
            match self.first.iter_mut().find(|place| place.is_none()) {
                Some(place) => *place = Some(waker),
                None => self.more.push(waker),
            }
        }
    }
}
