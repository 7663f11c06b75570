//! The functions of `login.rs` where only programs can be reached: the HTTP client of mcp-sansio-blocking is for Unix.

use std::io;

use mcp_sansio::client::ClientInfo;
use mcp_sansio_blocking::client::{Child, ClientError, ClientOptions};

use crate::args::Options;
use crate::terminal::Stop;

const NO_URL: &str = "inspect reaches a URL on Unix systems only; give the command of a server, after --";

pub(crate) fn reach<'m>(
    _: &str,
    _: &Options,
    _: ClientOptions,
    _: &'m ClientInfo<'m>,
    _: &Stop,
) -> Result<Child<'m>, ClientError> {
    Err(ClientError::Url(NO_URL.into()))
}

pub(crate) fn is_known(_: &str) -> bool {
    false
}

pub(crate) fn logout(_: &str, _: &Options, _: &Stop) -> io::Result<bool> {
    Err(io::Error::other(NO_URL))
}
