//! Clients: a device that uses the tools of another one, or of its host.

use embedded_io::{Read, ReadReady, Write};
use mcp_sansio::client::{Handler, Session};
use mcp_sansio::server::Millis;
use mcp_sansio::sink::{Lines, Storage};

use crate::{Error, wire};

/// Drives a client over `reader` and `writer` until `turn` says so or `reader` ends.
///
/// `turn` is called at every turn. It tells the time in milliseconds, on any clock that only goes forward; `None` ends
/// the loop. It may send requests ([`Session::link`]), and sleep where there is nothing to do, up to the
/// [next deadline](mcp_sansio::client::ClientOf::next_deadline).
///
/// ```no_run
/// use mcp_sansio_embedded::client::drive;
/// use mcp_sansio_embedded::mcp_sansio::client::{Client, Event, Link, Profile, Request, Session};
/// use mcp_sansio_embedded::mcp_sansio::frame::LineBuffer;
/// use mcp_sansio_embedded::mcp_sansio::sink::{Lines, Slice};
///
/// static PROFILE: Profile<'static> = Profile::new("panel", "1.0");
/// let (mut input, mut output, mut held) = ([0; 1024], [0; 512], [0; 128]);
/// let client = Client::<2>::new(&PROFILE).held(&mut held).timeout(10_000);
/// let mut session = Session::new(LineBuffer::new(&mut input), client, Lines::new(Slice::new(&mut output)));
/// session.client().connect();
/// # fn uart() -> mcp_sansio_embedded_doc::Uart { todo!() }
/// # mod mcp_sansio_embedded_doc {
/// #     pub struct Uart;
/// #     impl embedded_io::ErrorType for Uart { type Error = core::convert::Infallible; }
/// #     impl embedded_io::Read for Uart { fn read(&mut self, _: &mut [u8]) -> Result<usize, Self::Error> { Ok(0) } }
/// #     impl embedded_io::ReadReady for Uart { fn read_ready(&mut self) -> Result<bool, Self::Error> { Ok(true) } }
/// # }
/// # fn millis() -> u64 { 0 }
/// # let (rx, tx) = (uart(), Vec::<u8>::new());
/// let mut handler = |event: Event<'_>, link: &mut Link<'_, '_>| {
///     if let Event::Connected(_) = event {
///         let _ = link.send(&Request::call("read_temperature"));
///     }
/// };
/// drive(rx, tx, &mut session, &mut handler, |_| Some(millis()))?;
/// # Ok::<(), mcp_sansio_embedded::Error<core::convert::Infallible>>(())
/// ```
///
/// # Errors
/// What `reader` or `writer` fails with. Call it again to go on: what was in flight has its deadline, and an answer that
/// was damaged is lost with it.
pub fn drive<'m, R: Read + ReadReady, W: Write, B: Storage, const N: usize>(
    mut reader: R,
    mut writer: W,
    session: &mut Session<'m, Lines<B>, N>,
    handler: &mut dyn Handler,
    mut turn: impl FnMut(&mut Session<'m, Lines<B>, N>) -> Option<Millis>,
) -> Result<(), Error<R::Error, W::Error>> {
    writer.flush().map_err(Error::Write)?;
    while let Some(now) = turn(session) {
        wire::settle(&mut writer, session, |session| session.run(now, handler))?;
        if reader.read_ready().map_err(Error::Read)? && !wire::read(&mut reader, session)? {
            session.end_of_input();
            let _ = session.run(now, handler);
            return Ok(());
        }
    }
    Ok(())
}
