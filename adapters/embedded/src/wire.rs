//! Bytes between a session and the two halves of a wire.

use embedded_io::{Read, Write};
use mcp_sansio::session::Next;
use mcp_sansio::sink::{Lines, Storage};

use crate::Error;

/// What both sessions have: the server's and the client's.
pub(crate) trait Ends {
    fn space(&mut self) -> &mut [u8];
    fn filled(&mut self, n: usize);
    fn pending(&self) -> &[u8];
    fn sent(&mut self, n: usize);
}

/// Begins anew with a session that an earlier loop has brought to its end: lent buffers cannot be lent again.
pub(crate) fn begin<B: Storage, const N: usize>(session: &mut mcp_sansio::session::Session<'_, Lines<B>, N>) {
    if session.is_done() && session.pending().is_empty() {
        session.new_peer();
    }
}

/// Reads once; `false` is the end of the input.
pub(crate) fn read<R: Read, W>(reader: &mut R, session: &mut impl Ends) -> Result<bool, Error<R::Error, W>> {
    let space = session.space();
    if space.is_empty() {
        return Err(Error::TooSmall);
    }
    let n = reader.read(space).map_err(Error::Read)?;
    session.filled(n);
    Ok(n > 0)
}

/// Lets a session work, and writes all it has to say, until it needs more input.
pub(crate) fn settle<R, W: Write, E: Ends>(
    writer: &mut W,
    session: &mut E,
    mut run: impl FnMut(&mut E) -> Next,
) -> Result<(), Error<R, W::Error>> {
    let mut written = false;
    loop {
        let next = run(session);
        let wrote = write_all(writer, session)?;
        written |= wrote;
        match next {
            Next::Write if wrote => {}
            Next::Write => return Err(Error::TooSmall),
            _ if written => return writer.flush().map_err(Error::Write),
            _ => return Ok(()),
        }
    }
}

/// Writes everything that is pending; whether there was anything.
fn write_all<R, W: Write>(writer: &mut W, session: &mut impl Ends) -> Result<bool, Error<R, W::Error>> {
    let mut wrote = false;
    while !session.pending().is_empty() {
        match writer.write(session.pending()).map_err(Error::Write)? {
            0 => return Err(Error::Zero),
            n => session.sent(n),
        }
        wrote = true;
    }
    Ok(wrote)
}

macro_rules! ends {
    ($($session:ty),*) => {$(
        impl<B: Storage, const N: usize> Ends for $session {
            fn space(&mut self) -> &mut [u8] {
                self.space()
            }
            fn filled(&mut self, n: usize) {
                self.filled(n);
            }
            fn pending(&self) -> &[u8] {
                self.pending()
            }
            fn sent(&mut self, n: usize) {
                self.sent(n);
            }
        }
    )*};
}
ends!(mcp_sansio::session::Session<'_, Lines<B>, N>, mcp_sansio::client::Session<'_, Lines<B>, N>);
