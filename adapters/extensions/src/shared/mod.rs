//! Parts of tasks and of events: times as text.

pub(crate) mod date;

/// Counts how often places are looked at, or walked over.
#[cfg(test)]
pub(crate) mod looks {
    std::thread_local!(static LOOKS: core::cell::Cell<usize> = const { core::cell::Cell::new(0) });

    pub(crate) fn add_one() {
        LOOKS.set(LOOKS.get() + 1);
    }

    pub(crate) fn take() -> usize {
        LOOKS.take()
    }
}
