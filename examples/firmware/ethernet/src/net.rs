//! TCP/IP: smoltcp over the board's Ethernet controller.

use board::Ethernet;
use mcp_sansio::server::Millis;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr, Ipv4Address, Ipv4Cidr};

use crate::random::Random;

/// The MAC address of this board. The second bit of the first byte means: locally administered.
const MAC: [u8; 6] = [0x02, 0x00, 0x00, 0x6D, 0x63, 0x70];

/// The address if there is no DHCP server. QEMU forwards to this one.
const ADDRESS: Ipv4Cidr = Ipv4Cidr::new(Ipv4Address::new(10, 0, 2, 15), 24);
const ROUTER: Ipv4Address = Ipv4Address::new(10, 0, 2, 2);

/// The longest wait for a DHCP server.
const DHCP_MILLIS: Millis = 3_000;

/// The longest frame: 1 KiB of data with its headers. TCP announces that size to peers, so longer frames are not
/// for us.
pub(crate) const FRAME: usize = 14 + 20 + 20 + 1024;

/// The controller, and the buffer for its frames.
pub(crate) struct Port {
    ethernet: Ethernet,
    received: &'static mut [u8; FRAME],
    sent: &'static mut [u8; FRAME],
    pub(crate) random: Random,
    /// The number of clients that may connect before the next look at the sockets.
    free: usize,
    /// The clients that wait to connect.
    queue: &'static mut Queue,
    /// The first client of the queue.
    first: usize,
}

/// The most clients that wait for a socket. Frames of further clients are dropped; TCP sends them again some
/// seconds later.
pub(crate) const QUEUE: usize = 12;

/// The longest frame that opens a TCP connection, with all options of TCP.
const OPENING: usize = 14 + 20 + 60;

/// A frame that opens a connection, kept until there is a socket for it.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    frame: [u8; OPENING],
    length: usize,
}

pub(crate) type Queue = [Option<Opening>; QUEUE];

impl Port {
    pub(crate) fn new(
        port: board::EthernetPort,
        received: &'static mut [u8; FRAME],
        sent: &'static mut [u8; FRAME],
        queue: &'static mut Queue,
    ) -> Self {
        Port { ethernet: port.start(MAC), received, sent, random: Random::new(), free: 0, queue, first: 0 }
    }

    /// Returns the number of clients that wait for a socket.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.iter().flatten().count()
    }

    /// Sets the number of sockets that listen.
    pub(crate) fn accept(&mut self, free: usize) {
        self.free = free;
    }

    /// Returns the length of the next frame for smoltcp. A frame that opens a connection is kept while no socket
    /// listens, because smoltcp would refuse it.
    fn next(&mut self) -> Option<usize> {
        if self.free > 0
            && let Some(length) = self.take_opening()
        {
            return Some(length);
        }
        loop {
            let length = self.ethernet.receive(&mut self.received[..])?;
            self.random.catch(board::cycles());
            let frame = self.received.get(..length)?;
            if !is_opening(frame) {
                return Some(length);
            }
            if self.free > 0 {
                self.free -= 1;
                return Some(length);
            }
            self.keep_opening(length);
        }
    }

    fn keep_opening(&mut self, length: usize) {
        let Some(frame) = self.received.get(..length) else { return };
        let mut opening = Opening { frame: [0; OPENING], length };
        let Some(place) = opening.frame.get_mut(..length) else { return };
        for (place, byte) in place.iter_mut().zip(frame) {
            *place = *byte;
        }
        // A sender that gets no answer repeats its frame. Addresses and ports identify the repetition.
        let waits = |kept: &Opening| kept.frame.get(26..38) == frame.get(26..38);
        if self.queue.iter().flatten().any(waits) {
            return;
        }
        for at in 0..QUEUE {
            let place = self.queue.get_mut((self.first + at) % QUEUE);
            if let Some(place) = place.filter(|place| place.is_none()) {
                *place = Some(opening);
                return;
            }
        }
    }

    fn take_opening(&mut self) -> Option<usize> {
        let Opening { frame, length } = self.queue.get_mut(self.first)?.take()?;
        self.first = (self.first + 1) % QUEUE;
        self.free = self.free.saturating_sub(1);
        for (place, byte) in self.received.iter_mut().zip(frame) {
            *place = byte;
        }
        Some(length)
    }

    /// Sleeps until there is something to do, at most a millisecond.
    pub(crate) fn wait(&mut self) {
        self.ethernet.wait();
    }
}

pub(crate) struct Received<'p>(&'p [u8]);

pub(crate) struct Sending<'p> {
    ethernet: &'p mut Ethernet,
    frame: &'p mut [u8; FRAME],
}

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let frame = self.frame.get_mut(..length).unwrap_or_default();
        let result = f(frame);
        // A frame that the controller does not take is lost; TCP repeats it.
        let _ = self.ethernet.send(frame);
        result
    }
}

impl Device for Port {
    type RxToken<'p> = Received<'p>;
    type TxToken<'p> = Sending<'p>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        let length = self.next()?;
        let frame = self.received.get(..length)?;
        Some((Received(frame), Sending { ethernet: &mut self.ethernet, frame: self.sent }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        self.ethernet.can_send().then_some(Sending { ethernet: &mut self.ethernet, frame: self.sent })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME;
        capabilities.max_burst_size = Some(1);
        capabilities
    }
}

/// Returns `true` if a frame opens a TCP connection: IPv4, TCP, SYN without ACK.
fn is_opening(frame: &[u8]) -> bool {
    const TYPE: usize = 12;
    const IP: usize = 14;
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let tcp = IP + usize::from(byte(IP) & 0xF) * 4;
    (byte(TYPE), byte(TYPE + 1), byte(IP + 9)) == (0x08, 0x00, 6) && byte(tcp + 13) & 0x12 == 0x02
}

/// The board's network interface.
pub(crate) struct Net {
    pub(crate) port: Port,
    interface: Interface,
    pub(crate) sockets: SocketSet<'static>,
    dhcp: SocketHandle,
    configured: bool,
    started: Millis,
}

fn instant(now: Millis) -> Instant {
    Instant::from_millis(now as i64)
}

impl Net {
    pub(crate) fn new(mut port: Port, mut sockets: SocketSet<'static>, now: Millis) -> Self {
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(MAC)));
        let mut seed = [0; 8];
        port.random.fill(&mut seed);
        config.random_seed = u64::from_le_bytes(seed);
        let interface = Interface::new(config, &mut port, instant(now));
        let dhcp = sockets.add(dhcpv4::Socket::new());
        Net { port, interface, sockets, dhcp, configured: false, started: now }
    }

    /// Receives and sends frames. Returns `true` if there were any.
    pub(crate) fn poll(&mut self, now: Millis) -> bool {
        let result = self.interface.poll(instant(now), &mut self.port, &mut self.sockets);
        let event = self.sockets.get_mut::<dhcpv4::Socket<'_>>(self.dhcp).poll();
        match event {
            Some(dhcpv4::Event::Configured(config)) => {
                let (address, router) = (config.address, config.router);
                self.set_address(address, router);
            }
            Some(dhcpv4::Event::Deconfigured) => (self.configured, self.started) = (false, now),
            None => {}
        }
        if !self.configured && now.saturating_sub(self.started) >= DHCP_MILLIS {
            self.set_address(ADDRESS, Some(ROUTER));
        }
        result != smoltcp::iface::PollResult::None
    }

    fn set_address(&mut self, address: Ipv4Cidr, router: Option<Ipv4Address>) {
        self.configured = true;
        self.interface.update_ip_addrs(|addresses| {
            addresses.clear();
            let _ = addresses.push(IpCidr::Ipv4(address));
        });
        match router {
            Some(router) => {
                let _ = self.interface.routes_mut().add_default_ipv4_route(router);
            }
            None => {
                self.interface.routes_mut().remove_default_ipv4_route();
            }
        }
        board::log(b"ethernet: ready\n");
    }
}
