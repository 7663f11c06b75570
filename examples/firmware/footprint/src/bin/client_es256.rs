//! The client over HTTP with a token that is bound to a key. The key is in memory.

#![no_std]
#![no_main]

use footprint::bound::BoundToken;
use mcp_sansio_auth::jose::Es256Key;

footprint::main!(ask());

fn ask() {
    // A real board has a key of its own: secure random bytes, written in production.
    let Ok(key) = Es256Key::from_bytes(&[7; 32]) else { return };
    footprint::web::ask(&mut BoundToken::new(&key));
}
