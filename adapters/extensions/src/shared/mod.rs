//! Parts of tasks and of events: times as text, and messages that are kept.

pub(crate) mod date;
pub(crate) mod record_out;
