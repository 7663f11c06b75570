//! JSON objects that the bridge writes.

use alloc::vec::Vec;

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::sink::to_vec;

/// Writes an object.
pub(crate) fn written(members: impl FnOnce(&mut Object<'_, '_>)) -> Vec<u8> {
    let object = to_vec(|out| {
        let mut object = Object::open(out);
        members(&mut object);
        object.close()
    });
    object.unwrap_or_default()
}

/// Writes an object with another member `key`; a new one comes last.
pub(crate) fn replaced(object: Raw<'_>, key: &str, member: impl FnOnce(&mut Object<'_, '_>)) -> Vec<u8> {
    written(|copy| {
        object.members().filter(|(name, _)| !name.eq_str(key)).for_each(|(name, value)| copy.member(name, value));
        member(copy);
    })
}
