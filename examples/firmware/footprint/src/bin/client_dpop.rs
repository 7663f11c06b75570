//! The client over HTTP with a token that is bound to a key. The key is in a secure element.

#![no_std]
#![no_main]

use footprint::bound::BoundToken;
use footprint::element::Element;

footprint::main!(footprint::web::ask(&mut BoundToken::new(&Element)));
