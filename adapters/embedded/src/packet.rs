//! Packets as streams of bytes: what the endpoints of USB's serial class lack for [`serve`](crate::serve).
//!
//! Give the loops these two in place of a driver that only moves packets, and in place of one whose `flush` does nothing and
//! whose `read` returns 0 for an empty packet (embassy-usb 0.6 does both). They know no USB stack: two closures move the packets.
//!
//! | | blocking | async (feature `async`) |
//! |---|---|---|
//! | [`PacketReader`] | [`new`](PacketReader::new) | `new_async` |
//! | [`PacketWriter`] | [`new`](PacketWriter::new) | `new_async` |

use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;

use embedded_io::{ErrorType, Read, ReadReady, Write};

/// Reads a stream of bytes from packets. Skips empty ones: hosts send an empty packet behind a transfer whose last packet is
/// full, and a read of 0 bytes would be the end of the input.
///
/// ```
/// # use mcp_sansio_embedded::{packet::PacketReader, embedded_io::{ErrorKind, Read}};
/// # let mut arrived = vec![b"hello".to_vec(), b"".to_vec()];
/// # let mut endpoint = |place: &mut [u8]| arrived.pop().map(|packet| { place[..packet.len()].copy_from_slice(&packet); packet.len() });
/// let mut packet = [0; 64]; // as large as the endpoint's packets
/// let mut rx = PacketReader::new(&mut packet, |place: &mut [u8]| {
///     Ok::<_, ErrorKind>(endpoint(place)) // `None` while no packet has come
/// });
/// let mut bytes = [0; 2];
/// assert_eq!(rx.read(&mut bytes), Ok(2));
/// assert_eq!(&bytes, b"he");
/// ```
pub struct PacketReader<'b, F, E> {
    receive: F,
    packet: &'b mut [u8],
    /// What was received and not read.
    unread: Range<usize>,
    error: PhantomData<fn() -> E>,
}

impl<'b, F, E> PacketReader<'b, F, E> {
    /// Reads packets with `receive`: it writes the next packet to the slice it is given (`packet`, which must hold the largest
    /// one) and returns its length, or `None` while there is none. [`Read::read`] asks again and again until there is one;
    /// [`ReadReady`] asks once.
    pub const fn new(packet: &'b mut [u8], receive: F) -> Self
    where
        F: FnMut(&mut [u8]) -> Result<Option<usize>, E>,
    {
        Self::of(packet, receive)
    }

    /// As [`new`](PacketReader::new), with a `receive` that waits for the next packet. It may be dropped half way only where
    /// that loses nothing, as for embassy-usb.
    ///
    /// ```ignore
    /// // embassy-usb; while the cable is unplugged this waits.
    /// let mut rx = PacketReader::new_async(&mut packet, async |place: &mut [u8]| {
    ///     receiver.wait_connection().await;
    ///     receiver.read_packet(place).await
    /// });
    /// ```
    #[cfg(feature = "async")]
    pub const fn new_async(packet: &'b mut [u8], receive: F) -> Self
    where
        F: AsyncFnMut(&mut [u8]) -> Result<usize, E>,
    {
        Self::of(packet, receive)
    }

    const fn of(packet: &'b mut [u8], receive: F) -> Self {
        PacketReader { receive, packet, unread: 0..0, error: PhantomData }
    }

    /// Drops what was received and not read: call it with [`Session::new_peer`](mcp_sansio::session::Session::new_peer).
    pub const fn new_peer(&mut self) {
        self.unread = 0..0;
    }

    /// Receives packets and drops them, until receiving fails. Race it with the wait for the next client (DTR rises): a packet
    /// that comes while nobody has the port open is the rest of what the client before sent.
    ///
    /// # Errors
    /// What receiving fails with.
    #[cfg(feature = "async")]
    pub async fn drain(&mut self) -> Result<core::convert::Infallible, E>
    where
        F: AsyncFnMut(&mut [u8]) -> Result<usize, E>,
    {
        self.new_peer();
        loop {
            (self.receive)(self.packet).await?;
        }
    }

    fn received(&mut self, n: usize) {
        self.unread = 0..n.min(self.packet.len());
    }

    /// Moves bytes that were received to `place`.
    fn take(&mut self, place: &mut [u8]) -> usize {
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

#[cfg(feature = "async")]
impl<F, E: embedded_io::Error> embedded_io_async::Read for PacketReader<'_, F, E>
where
    F: AsyncFnMut(&mut [u8]) -> Result<usize, E>,
{
    async fn read(&mut self, place: &mut [u8]) -> Result<usize, E> {
        while !place.is_empty() && self.unread.is_empty() {
            let n = (self.receive)(self.packet).await?;
            self.received(n);
        }
        Ok(self.take(place))
    }
}

impl<F, E> fmt::Debug for PacketReader<'_, F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketReader").field("unread", &self.unread).finish_non_exhaustive()
    }
}

/// Writes a stream of bytes as packets. `flush` sends an empty packet where the last one was full: a host takes a transfer for
/// complete when a packet is short, and answers of 64, 128, 192, ... bytes would stay with it until something else is sent.
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
    send: F,
    max: usize,
    /// The last packet was full: the host waits for another one.
    full: bool,
    /// The last byte that went out was not a newline.
    in_line: bool,
    /// The line that was begun is to be ended before anything else is sent.
    cut: bool,
    error: PhantomData<fn() -> E>,
}

impl<F, E> PacketWriter<F, E> {
    /// Writes packets of at most `max` bytes (64 for full-speed bulk endpoints, 512 for high-speed ones) with `send`, which waits
    /// until the endpoint has taken the packet.
    pub const fn new(max: usize, send: F) -> Self
    where
        F: FnMut(&[u8]) -> Result<(), E>,
    {
        Self::of(max, send)
    }

    /// As [`new`](PacketWriter::new), for executors.
    ///
    /// ```ignore
    /// let max = sender.max_packet_size().into(); // embassy-usb
    /// let mut tx = PacketWriter::new_async(max, async |packet: &[u8]| sender.write_packet(packet).await);
    /// ```
    #[cfg(feature = "async")]
    pub const fn new_async(max: usize, send: F) -> Self
    where
        F: AsyncFnMut(&[u8]) -> Result<(), E>,
    {
        Self::of(max, send)
    }

    const fn of(max: usize, send: F) -> Self {
        PacketWriter { send, max, full: false, in_line: false, cut: false, error: PhantomData }
    }

    /// Says that the client has gone and another one may come: call it with
    /// [`Session::new_peer`](mcp_sansio::session::Session::new_peer).
    ///
    /// A packet that the endpoint has taken cannot be called back; the next client reads it. If it ends in the middle of a
    /// line, a newline is sent before the next byte, so that the first answer is not joined to it.
    pub const fn new_peer(&mut self) {
        self.cut = self.in_line;
    }

    /// The bytes of the next packet.
    fn packet<'p>(&mut self, bytes: &'p [u8]) -> &'p [u8] {
        // Set before it is sent: one that is given up half way may have gone out.
        self.in_line = true;
        if self.cut { b"\n" } else { bytes.get(..self.max).unwrap_or(bytes) }
    }

    /// Notes that a packet was sent; how much of the bytes to write it was.
    fn sent(&mut self, packet: &[u8]) -> usize {
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

#[cfg(feature = "async")]
impl<F, E: embedded_io::Error> embedded_io_async::Write for PacketWriter<F, E>
where
    F: AsyncFnMut(&[u8]) -> Result<(), E>,
{
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, E> {
        while self.max > 0 && !bytes.is_empty() {
            let packet = self.packet(bytes);
            (self.send)(packet).await?;
            let n = self.sent(packet);
            if n > 0 {
                return Ok(n);
            }
        }
        Ok(0)
    }

    async fn flush(&mut self) -> Result<(), E> {
        if self.full {
            (self.send)(&[]).await?;
            self.full = false;
        }
        Ok(())
    }
}

impl<F, E> fmt::Debug for PacketWriter<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketWriter").field("max", &self.max).field("full", &self.full).finish_non_exhaustive()
    }
}
