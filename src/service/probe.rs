//! Sinks that tell something of what is written to them, and keep nothing.

use crate::sink::{Full, Kind, Mark, Out, Sink};

macro_rules! no_framing {
    ($type:ty) => {
        impl Out for $type {
            fn begin(&mut self, _: Kind) -> Result<(), Full> {
                Ok(())
            }
            fn end(&mut self) {}
            fn mark(&self) -> Mark {
                Mark::new(0)
            }
            fn roll_back(&mut self, _: Mark) {}
            fn hold(&mut self, _: bool) {}
            fn held(&self) -> bool {
                false
            }
            fn capacity(&self) -> usize {
                usize::MAX
            }
        }
    };
}

/// Whether what is written begins an object: stops after the first bytes.
pub(super) fn starts_object(write: &dyn Fn(&mut dyn Out) -> Result<(), Full>) -> bool {
    struct First(Option<u8>);
    impl Sink for First {
        fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
            match bytes.first() {
                None => Ok(()),
                Some(first) => {
                    self.0 = self.0.or(Some(*first));
                    Err(Full::Never)
                }
            }
        }
        fn room(&self) -> usize {
            usize::MAX
        }
    }
    no_framing!(First);
    let mut first = First(None);
    let _ = write(&mut first);
    first.0 == Some(b'{')
}

/// Takes everything and keeps nothing.
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn put(&mut self, _: &[u8]) -> Result<(), Full> {
        Ok(())
    }
    fn room(&self) -> usize {
        usize::MAX
    }
}
