//! Moves bytes between a session and the two halves of a wire.

use embedded_io::{Read, Write};
use mcp_sansio::line_server::NextStep;
use mcp_sansio::sink::{LineSink, Storage};

use crate::error::IoError;

/// The byte interface that the sessions of server and client share.
pub(crate) trait Ends {
    fn space(&mut self) -> &mut [u8];
    fn filled(&mut self, n: usize);
    fn pending(&self) -> &[u8];
    fn sent(&mut self, n: usize);
}

/// Restarts a session that an earlier loop has ended. The caller cannot build a new one: its buffers are still lent.
pub(crate) fn begin<B: Storage>(session: &mut mcp_sansio::line_server::LineServer<'_, LineSink<B>>) {
    if session.is_done() && session.pending().is_empty() {
        session.new_peer();
    }
}

/// Reads once. Returns `false` at the end of the input.
pub(crate) fn read<R: Read, W>(reader: &mut R, session: &mut impl Ends) -> Result<bool, IoError<R::Error, W>> {
    let space = session.space();
    if space.is_empty() {
        return Err(IoError::TooSmall);
    }
    let n = reader.read(space).map_err(IoError::Read)?;
    session.filled(n);
    Ok(n > 0)
}

/// Runs the session and writes its output, until it needs more input.
pub(crate) fn settle<R, W: Write, E: Ends>(
    writer: &mut W,
    session: &mut E,
    mut run: impl FnMut(&mut E) -> NextStep,
) -> Result<(), IoError<R, W::Error>> {
    let mut written = false;
    loop {
        let next = run(session);
        let wrote = write_all(writer, session)?;
        written |= wrote;
        match next {
            NextStep::Write if wrote => {}
            NextStep::Write => return Err(IoError::TooSmall),
            _ if written => return writer.flush().map_err(IoError::Write),
            _ => return Ok(()),
        }
    }
}

/// Writes all pending output. Returns `false` if there was none.
fn write_all<R, W: Write>(writer: &mut W, session: &mut impl Ends) -> Result<bool, IoError<R, W::Error>> {
    let mut wrote = false;
    while !session.pending().is_empty() {
        match writer.write(session.pending()).map_err(IoError::Write)? {
            0 => return Err(IoError::Zero),
            n => session.sent(n),
        }
        wrote = true;
    }
    Ok(wrote)
}

macro_rules! ends {
    ($($session:ty),*) => {$(
        impl<B: Storage> Ends for $session {
            fn space(&mut self) -> &mut [u8] {
                self.space()
            }
            fn filled(&mut self, n: usize) {
                self.filled(n);
            }
            fn pending(&self) -> &[u8] {
                self.out.pending()
            }
            fn sent(&mut self, n: usize) {
                self.out.sent(n);
            }
        }
    )*};
}
ends!(mcp_sansio::line_server::LineServer<'_, LineSink<B>>, mcp_sansio::client::LineClient<'_, LineSink<B>>);
