//! Memory that the caller lends, or that grows up to a limit with an allocator: [bytes](Store), [slots](Slots),
//! [short texts](FixedText), and [records] of different sizes in one block of bytes.

mod fixed_text;
pub mod records;
mod slots;
mod store;

pub use fixed_text::FixedText;
pub use slots::Slots;
pub use store::Store;
