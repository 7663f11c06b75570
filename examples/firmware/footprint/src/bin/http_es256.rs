//! The five tools over HTTP, for clients with a token. Signatures are checked in software.

#![no_std]
#![no_main]

footprint::main!(footprint::guard::serve(&mcp_sansio_auth::jose::Es256));
