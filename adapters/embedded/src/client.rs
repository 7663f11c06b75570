//! Clients: a device that calls the tools of another device, or of its host.

use embedded_io::{Read, ReadReady, Write};
use mcp_sansio::client::{ClientHandler, LineClient};
use mcp_sansio::server::Millis;
use mcp_sansio::sink::{LineSink, Storage};

use crate::error::IoError;
use crate::wire;

/// Drives a client over `reader` and `writer` until `reader` ends or `turn` returns `None`.
///
/// The loop calls `turn` at every turn. It returns the time in milliseconds, on any clock that only goes forward.
/// It may send requests ([`LineClient::handle`]). If there is nothing to do, it may sleep, up to the [next
/// deadline](mcp_sansio::client::Client::next_deadline).
///
/// ```no_run
/// use mcp_sansio_embedded::client::drive;
/// use mcp_sansio_embedded::mcp_sansio::client::{Client, ClientEvent, ClientHandle, PendingRequest, ClientInfo, Request, LineClient};
/// use mcp_sansio_embedded::mcp_sansio::frame::LineBuffer;
/// use mcp_sansio_embedded::mcp_sansio::sink::{LineSink, SliceStorage};
///
/// static PROFILE: ClientInfo<'static> = ClientInfo::new("panel", "1.0");
/// let (mut input, mut output, mut held, mut slots) = ([0; 1024], [0; 512], [0; 128], [PendingRequest::FREE; 2]);
/// let client = Client::new(&PROFILE, &mut slots).held(&mut held).timeout(10_000);
/// let mut session = LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
/// session.client.connect();
/// # fn uart() -> mcp_sansio_embedded_doc::Uart { todo!() }
/// # mod mcp_sansio_embedded_doc {
/// #     pub struct Uart;
/// #     impl embedded_io::ErrorType for Uart { type Error = core::convert::Infallible; }
/// #     impl embedded_io::Read for Uart { fn read(&mut self, _: &mut [u8]) -> Result<usize, Self::Error> { Ok(0) } }
/// #     impl embedded_io::ReadReady for Uart { fn read_ready(&mut self) -> Result<bool, Self::Error> { Ok(true) } }
/// # }
/// # fn millis() -> u64 { 0 }
/// # let (rx, tx) = (uart(), Vec::<u8>::new());
/// let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| {
///     if let ClientEvent::Connected(_) = event {
///         let _ = handle.send(&Request::call("read_temperature"));
///     }
/// };
/// drive(rx, tx, &mut session, &mut handler, |_| Some(millis()))?;
/// # Ok::<(), mcp_sansio_embedded::IoError<core::convert::Infallible>>(())
/// ```
///
/// # Errors
/// Returns [`IoError::Read`] or [`IoError::Write`] with the error of `reader` or `writer`, [`IoError::Zero`] if `writer`
/// takes no byte, and [`IoError::TooSmall`] if a buffer of the session is too small. To go on after an error, call
/// `drive` again. An answer with a damaged byte is lost; its request ends at its deadline.
pub fn drive<'m, R: Read + ReadReady, W: Write, B: Storage>(
    mut reader: R,
    mut writer: W,
    session: &mut LineClient<'m, LineSink<B>>,
    handler: &mut dyn ClientHandler,
    mut turn: impl FnMut(&mut LineClient<'m, LineSink<B>>) -> Option<Millis>,
) -> Result<(), IoError<R::Error, W::Error>> {
    // An earlier call may have written bytes and failed to flush them.
    writer.flush().map_err(IoError::Write)?;
    while let Some(now) = turn(session) {
        wire::settle(&mut writer, session, |session| session.run(now, handler))?;
        if reader.read_ready().map_err(IoError::Read)? && !wire::read(&mut reader, session)? {
            session.end_of_input();
            let _ = session.run(now, handler);
            return Ok(());
        }
    }
    Ok(())
}
