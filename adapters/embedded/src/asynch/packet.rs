//! Packets of async drivers.

use embedded_io_async::{Read, Write};

use crate::packet::{PacketReader, PacketWriter};

impl<'b, F, E> PacketReader<'b, F, E> {
    /// Reads packets like [`new`](PacketReader::new), with a `receive` that waits for the next packet. If the
    /// future of a read may be dropped, dropping the future of `receive` must lose no packet. With embassy-usb it
    /// loses none.
    ///
    /// ```ignore
    /// // embassy-usb. It waits while the cable is unplugged.
    /// let mut rx = PacketReader::new_async(&mut packet, async |place: &mut [u8]| {
    ///     receiver.wait_connection().await;
    ///     receiver.read_packet(place).await
    /// });
    /// ```
    pub const fn new_async(packet: &'b mut [u8], receive: F) -> Self
    where
        F: AsyncFnMut(&mut [u8]) -> Result<usize, E>,
    {
        Self::of(packet, receive)
    }

    /// Receives packets and drops them, until `receive` fails. Run it together with the wait for the next client
    /// (DTR rises): a packet that arrives while the port is closed is a rest from the client before.
    ///
    /// # Errors
    /// Returns the error of `receive`.
    pub async fn drain(&mut self) -> Result<core::convert::Infallible, E>
    where
        F: AsyncFnMut(&mut [u8]) -> Result<usize, E>,
    {
        self.new_peer();
        loop {
            (self.receive)(self.packet).await?;
        }
    }
}

impl<F, E: embedded_io::Error> Read for PacketReader<'_, F, E>
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

impl<F, E> PacketWriter<F, E> {
    /// Writes packets like [`new`](PacketWriter::new), with a `send` that is async.
    ///
    /// ```ignore
    /// let max = sender.max_packet_size().into(); // embassy-usb
    /// let mut tx = PacketWriter::new_async(max, async |packet: &[u8]| sender.write_packet(packet).await);
    /// ```
    pub const fn new_async(max: usize, send: F) -> Self
    where
        F: AsyncFnMut(&[u8]) -> Result<(), E>,
    {
        Self::of(max, send)
    }
}

impl<F, E: embedded_io::Error> Write for PacketWriter<F, E>
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
