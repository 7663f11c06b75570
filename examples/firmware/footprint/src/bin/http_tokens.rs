//! The five tools over HTTP, for clients with a token. A secure element checks the signatures.

#![no_std]
#![no_main]

footprint::main!(footprint::guard::serve(&footprint::element::Element));
