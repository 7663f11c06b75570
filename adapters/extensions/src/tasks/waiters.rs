//! The requests `tasks/result` of 2025-11-25 that wait for a task. They are records of its slot, oldest first: the data is the
//! number of the token, the tag says whether the request goes on.
//!
//! The newest request of a task asks the questions of the task. A client that has lost the connection sends a new one.

use mcp_sansio::memory::records::{NoRoomError, Record, Records};
use mcp_sansio::server::RequestToken;

/// The kind of the records.
pub(crate) const WAITER: u8 = 6;

/// The most requests that wait for one task.
pub(crate) const WAITERS_MAX: usize = 4;

/// It is suspended.
const WAITING: u8 = 0;
/// It has asked the client.
const ASKING: u8 = 1;
/// It has to run again; the program does not know yet.
const WOKEN: u8 = 2;
/// The same, for the last time: the task has ended, or too many requests wait for it. The slot may have another task already.
const LEAVING: u8 = 3;

fn is_of(record: &Record<'_>, owner: u32) -> bool {
    record.kind == WAITER && record.owner == owner && record.tag != LEAVING
}

fn token(record: &Record<'_>) -> RequestToken {
    RequestToken::from_bits(u64::from_le_bytes(record.data.try_into().unwrap_or_default()))
}

/// Adds a request. If there are too many, the oldest one leaves.
pub(crate) fn add(records: &mut Records<'_>, owner: u32, waiter: RequestToken) -> Result<(), NoRoomError> {
    records.push(owner, WAITER, WAITING, &[&waiter.to_bits().to_le_bytes()])?;
    let own = records.iter().filter(|record| is_of(record, owner)).count();
    let oldest = records.iter().find(|record| is_of(record, owner)).map(|record| record.at());
    if let Some(at) = oldest.filter(|_| own > WAITERS_MAX) {
        records.set_tag(at, LEAVING);
    }
    // The new one asks the questions.
    records.retag(|record| (is_of(record, owner) && record.tag == ASKING).then_some(WOKEN));
    Ok(())
}

/// Removes a request.
pub(crate) fn remove(records: &mut Records<'_>, waiter: RequestToken) {
    records.remove(|record| record.kind == WAITER && token(record) == waiter);
}

/// Returns whether a request waits for the task.
pub(crate) fn contains(records: &Records<'_>, owner: u32, waiter: RequestToken) -> bool {
    records.iter().any(|record| is_of(&record, owner) && token(&record) == waiter)
}

/// Returns whether a request is the one that asks the questions.
pub(crate) fn is_newest(records: &Records<'_>, owner: u32, waiter: RequestToken) -> bool {
    records.iter().filter(|record| is_of(record, owner)).last().is_some_and(|record| token(&record) == waiter)
}

/// Notes whether a request has asked the client, or is suspended.
pub(crate) fn set_asking(records: &mut Records<'_>, waiter: RequestToken, asks: bool) {
    let tag = if asks { ASKING } else { WAITING };
    records.retag(|record| (record.kind == WAITER && record.tag != LEAVING && token(record) == waiter).then_some(tag));
}

/// Wakes the newest request: there are questions for it. One that asks already goes on after the answers.
pub(crate) fn wake_newest(records: &mut Records<'_>, owner: u32) {
    let newest = records.iter().filter(|record| is_of(record, owner)).last();
    if let Some(at) = newest.filter(|record| record.tag == WAITING).map(|record| record.at()) {
        records.set_tag(at, WOKEN);
    }
}

/// Wakes all requests for these slots: the task has ended, or does not exist any more.
pub(crate) fn wake_all(records: &mut Records<'_>, is_over: impl Fn(u32) -> bool) {
    records.retag(|record| (is_of(record, record.owner) && is_over(record.owner)).then_some(LEAVING));
}

/// Returns a request that was woken, once.
pub(crate) fn next_woken(records: &mut Records<'_>) -> Option<RequestToken> {
    let woken = records.iter().find(|record| record.kind == WAITER && matches!(record.tag, WOKEN | LEAVING))?;
    let (at, tag, token) = (woken.at(), woken.tag, token(&woken));
    match tag {
        WOKEN => records.set_tag(at, WAITING),
        _ => records.remove(|record| record.at() == at),
    }
    Some(token)
}
