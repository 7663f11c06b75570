//! JSON objects that the bridge writes.

use alloc::vec::Vec;

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::sink::{LineSink, MessageHead, whole};

/// Writes an object.
pub(crate) fn written(members: impl FnOnce(&mut Object<'_, '_>)) -> Vec<u8> {
    let mut out = LineSink::new(Vec::new());
    let _ = whole(&mut out, MessageHead::Notification, |out| {
        let mut object = Object::open(out);
        members(&mut object);
        object.close()
    });
    // Without the end of the line.
    let mut object = out.into_inner();
    object.pop();
    object
}

/// Writes an object with another member `key`; a new one comes last.
pub(crate) fn replaced(object: Raw<'_>, key: &str, member: impl FnOnce(&mut Object<'_, '_>)) -> Vec<u8> {
    written(|copy| {
        object.members().filter(|(name, _)| !name.eq_str(key)).for_each(|(name, value)| copy.member(name, value));
        member(copy);
    })
}
