//! The client over HTTP: connects in either era, calls a tool again and again, and checks the answers.

#![no_std]
#![no_main]

footprint::main!(footprint::web::ask(&mut ()));
