//! Packets as streams of bytes, to run [`serve`](crate::serve) over the endpoints of USB's serial class.
//!
//! Use these two types with a driver that only moves packets, and with a driver whose `flush` does nothing and
//! whose `read` returns 0 for an empty packet (embassy-usb 0.6 does both). They depend on no USB stack: two
//! closures move the packets.
//!
//! | | blocking | async |
//! |---|---|---|
//! | [`PacketReader`] | [`new`](PacketReader::new) | `new_async` |
//! | [`PacketWriter`] | [`new`](PacketWriter::new) | `new_async` |

use core::marker::PhantomData;
use core::ops::Range;

use embedded_io::{ErrorType, Read, ReadReady, Write};

/// Reads a stream of bytes from packets. Skips empty packets: hosts send one after a transfer whose last packet is
/// full, and a read of 0 bytes would mean the end of the input.
///
/// ```
/// # use mcp_sansio_embedded::{packet::PacketReader, embedded_io::{ErrorKind, Read}};
/// # let mut arrived = vec![b"hello".to_vec(), b"".to_vec()];
/// # let mut endpoint = |place: &mut [u8]| arrived.pop().map(|packet| { place[..packet.len()].copy_from_slice(&packet); packet.len() });
/// let mut packet = [0; 64]; // as large as the endpoint's packets
/// let mut rx = PacketReader::new(&mut packet, |place: &mut [u8]| {
///     Ok::<_, ErrorKind>(endpoint(place)) // `None` if there is no packet
/// });
/// let mut bytes = [0; 2];
/// assert_eq!(rx.read(&mut bytes), Ok(2));
/// assert_eq!(&bytes, b"he");
/// ```
pub struct PacketReader<'b, F, E> {
    pub(crate) receive: F,
    pub(crate) packet: &'b mut [u8],
    /// The bytes of `packet` that are received and not read yet.
    pub(crate) unread: Range<usize>,
    error: PhantomData<fn() -> E>,
}

impl<'b, F, E> PacketReader<'b, F, E> {
    /// Reads packets with `receive`. It writes the next packet to the slice that it gets (`packet`, which must hold
    /// the largest packet), and returns its length, or `None` if there is no packet. [`Read::read`] calls it until
    /// there is one; [`ReadReady`] calls it once.
    pub const fn new(packet: &'b mut [u8], receive: F) -> Self
    where
        F: FnMut(&mut [u8]) -> Result<Option<usize>, E>,
    {
        Self::of(packet, receive)
    }

    pub(crate) const fn of(packet: &'b mut [u8], receive: F) -> Self {
        PacketReader { receive, packet, unread: 0..0, error: PhantomData }
    }

    /// Drops the bytes that are received and not read. Call it with
    /// [`Session::new_peer`](mcp_sansio::line_server::LineServer::new_peer).
    pub const fn new_peer(&mut self) {
        self.unread = 0..0;
    }

    pub(crate) fn received(&mut self, n: usize) {
        self.unread = 0..n.min(self.packet.len());
    }

    /// Moves received bytes to `place`.
    pub(crate) fn take(&mut self, place: &mut [u8]) -> usize {
        let bytes = self.packet.get(self.unread.clone()).unwrap_or_default();
        let n = bytes.len().min(place.len());
        for (place, byte) in place.iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.unread.start += n;
        n
    }
}

impl<F, E: embedded_io::Error> ErrorType for PacketReader<'_, F, E> {
    type Error = E;
}

impl<F, E: embedded_io::Error> ReadReady for PacketReader<'_, F, E>
where
    F: FnMut(&mut [u8]) -> Result<Option<usize>, E>,
{
    fn read_ready(&mut self) -> Result<bool, E> {
        if self.unread.is_empty()
            && let Some(n) = (self.receive)(self.packet)?
        {
            self.received(n);
        }
        Ok(!self.unread.is_empty())
    }
}

impl<F, E: embedded_io::Error> Read for PacketReader<'_, F, E>
where
    F: FnMut(&mut [u8]) -> Result<Option<usize>, E>,
{
    fn read(&mut self, place: &mut [u8]) -> Result<usize, E> {
        while !place.is_empty() && !self.read_ready()? {}
        Ok(self.take(place))
    }
}

mcp_sansio::debug_fields!(impl<F, E> for PacketReader<'_, F, E> { unread });

/// Writes a stream of bytes as packets. `flush` sends an empty packet if the last packet was full: for a host a
/// transfer is complete only when a packet is short. Otherwise answers of 64, 128, 192, … bytes would stay in the
/// host's driver.
///
/// ```
/// # use mcp_sansio_embedded::{packet::PacketWriter, embedded_io::{ErrorKind, Write}};
/// let mut sent = Vec::new();
/// let mut tx = PacketWriter::new(4, |packet: &[u8]| {
///     sent.push(packet.len());
///     Ok::<_, ErrorKind>(())
/// });
/// tx.write_all(b"12345678")?;
/// tx.flush()?;
/// assert_eq!(sent, [4, 4, 0]);
/// # Ok::<(), ErrorKind>(())
/// ```
pub struct PacketWriter<F, E> {
    pub(crate) send: F,
    pub(crate) max: usize,
    /// The last packet was full: the host waits for another packet.
    pub(crate) full: bool,
    /// The last byte that was sent was not a newline.
    in_line: bool,
    /// A newline must be sent first: the line of the client before is not complete.
    cut: bool,
    error: PhantomData<fn() -> E>,
}

impl<F, E> PacketWriter<F, E> {
    /// Writes packets of at most `max` bytes with `send`, which waits until the endpoint has taken the packet.
    /// `max` is 64 for full-speed bulk endpoints, 512 for high-speed ones.
    pub const fn new(max: usize, send: F) -> Self
    where
        F: FnMut(&[u8]) -> Result<(), E>,
    {
        Self::of(max, send)
    }

    pub(crate) const fn of(max: usize, send: F) -> Self {
        PacketWriter { send, max, full: false, in_line: false, cut: false, error: PhantomData }
    }

    /// Prepares for the next client. Call it with [`Session::new_peer`](mcp_sansio::line_server::LineServer::new_peer).
    ///
    /// The next client reads any packet that the endpoint has already taken. If such a packet ends inside a line, a
    /// newline is sent first, to keep the first answer separate from it.
    pub const fn new_peer(&mut self) {
        self.cut = self.in_line;
    }

    /// Returns the bytes of the next packet.
    pub(crate) fn packet<'p>(&mut self, bytes: &'p [u8]) -> &'p [u8] {
        // Set before sending: a packet whose future is dropped may still be sent.
        self.in_line = true;
        if self.cut { b"\n" } else { bytes.get(..self.max).unwrap_or(bytes) }
    }

    /// Notes that a packet was sent. Returns how many of the caller's bytes it had.
    pub(crate) fn sent(&mut self, packet: &[u8]) -> usize {
        self.full = packet.len() == self.max;
        self.in_line = packet.last() != Some(&b'\n');
        if core::mem::take(&mut self.cut) { 0 } else { packet.len() }
    }
}

impl<F, E: embedded_io::Error> ErrorType for PacketWriter<F, E> {
    type Error = E;
}

impl<F, E: embedded_io::Error> Write for PacketWriter<F, E>
where
    F: FnMut(&[u8]) -> Result<(), E>,
{
    fn write(&mut self, bytes: &[u8]) -> Result<usize, E> {
        while self.max > 0 && !bytes.is_empty() {
            let packet = self.packet(bytes);
            (self.send)(packet)?;
            let n = self.sent(packet);
            if n > 0 {
                return Ok(n);
            }
        }
        Ok(0)
    }

    fn flush(&mut self) -> Result<(), E> {
        if self.full {
            (self.send)(&[])?;
            self.full = false;
        }
        Ok(())
    }
}

mcp_sansio::debug_fields!(impl<F, E> for PacketWriter<F, E> { max, full });
