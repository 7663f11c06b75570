//! Parts of tasks and of events: times as text.

pub(crate) mod date;
