//! The network: virtio, version 2 over MMIO. The device reads and writes the buffers of frames itself.
//!
//! All memory shared with the device is atomic, so that no Rust reference promises more than the device keeps. The
//! interrupt handler only ends a sleep.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering, fence};

use super::trap;
use crate::mmio::Reg;

const BASE: usize = 0x1000_1000;

/// Names a register of the device.
const fn register(offset: usize) -> Reg {
    // SAFETY: registers of virtio over MMIO, section 4.2.2 of its specification. Through them the device learns which
    // memory to read and write: the statics below.
    unsafe { Reg::at(BASE + offset) }
}

const DEVICE_ID: Reg = register(0x008);
const FEATURES: Reg = register(0x020);
const FEATURES_SELECT: Reg = register(0x024);
const QUEUE_SELECT: Reg = register(0x030);
const QUEUE_LENGTH: Reg = register(0x038);
const QUEUE_READY: Reg = register(0x044);
const QUEUE_NOTIFY: Reg = register(0x050);
const INTERRUPT_STATUS: Reg = register(0x060);
const INTERRUPT_ACK: Reg = register(0x064);
const STATUS: Reg = register(0x070);
const QUEUE_DESCRIPTORS: Reg = register(0x080);
const QUEUE_OFFERED: Reg = register(0x090);
const QUEUE_USED: Reg = register(0x0A0);

const NETWORK: u32 = 1;

const STATUS_ACKNOWLEDGED: u32 = 1;
const STATUS_DRIVER: u32 = 2;
const STATUS_DRIVER_OK: u32 = 4;
const STATUS_FEATURES_OK: u32 = 8;

/// The only feature, number 32: this version of virtio.
const FEATURES_32_VERSION_1: u32 = 1;

/// A flag of a descriptor: the device writes to its buffer.
const DEVICE_WRITES: u32 = 2;
/// A flag of the offered descriptors: no interrupt after use.
const NO_INTERRUPT: u16 = 1;

const RECEIVE: u32 = 0;
const SEND: u32 = 1;

/// The number of frames under way, in each direction.
const FRAMES: usize = 4;

/// The length of the header that the device puts before each frame. Zeros are correct.
const BEFORE: usize = 12;
/// The header of a frame.
const HEADER: usize = 14;
/// The longest frame.
const LONGEST: usize = 1514;

#[repr(C, align(16))]
struct Descriptor {
    address: AtomicU32,
    address_high: AtomicU32,
    length: AtomicU32,
    /// The flags of the descriptor and, above these 16 bits, the number of the next one, if there is one.
    flags: AtomicU32,
}

impl Descriptor {
    const fn new() -> Self {
        let (address, address_high) = (AtomicU32::new(0), AtomicU32::new(0));
        Descriptor { address, address_high, length: AtomicU32::new(0), flags: AtomicU32::new(0) }
    }
}

/// The numbers of the descriptors that the device may use.
#[repr(C)]
struct Offered {
    flags: AtomicU16,
    count: AtomicU16,
    ring: [AtomicU16; FRAMES],
}

/// The numbers of the descriptors that the device has used, each with the bytes it has written.
#[repr(C, align(4))]
struct Used {
    _flags: AtomicU16,
    count: AtomicU16,
    ring: [(AtomicU32, AtomicU32); FRAMES],
}

type Buffer = [AtomicU8; BEFORE + LONGEST];

/// The frames in one direction. Each descriptor keeps its buffer for ever.
struct Queue {
    descriptors: [Descriptor; FRAMES],
    offered: Offered,
    used: Used,
    buffers: [Buffer; FRAMES],
}

static RECEIVED: Queue = Queue::new();
static SENT: Queue = Queue::new();

fn address<T>(of: &T) -> u32 {
    core::ptr::from_ref(of).addr() as u32
}

impl Queue {
    const fn new() -> Self {
        Queue {
            descriptors: [const { Descriptor::new() }; FRAMES],
            offered: Offered {
                flags: AtomicU16::new(0),
                count: AtomicU16::new(0),
                ring: [const { AtomicU16::new(0) }; FRAMES],
            },
            used: Used {
                _flags: AtomicU16::new(0),
                count: AtomicU16::new(0),
                ring: [const { (AtomicU32::new(0), AtomicU32::new(0)) }; FRAMES],
            },
            buffers: [const { [const { AtomicU8::new(0) }; BEFORE + LONGEST] }; FRAMES],
        }
    }

    /// Gives the device the queue's addresses.
    fn start(&self, number: u32, flags: u32) {
        for (descriptor, buffer) in self.descriptors.iter().zip(&self.buffers) {
            descriptor.address.store(address(buffer), Ordering::Relaxed);
            descriptor.length.store(buffer.len() as u32, Ordering::Relaxed);
            descriptor.flags.store(flags, Ordering::Relaxed);
        }
        QUEUE_SELECT.write(number);
        QUEUE_LENGTH.write(FRAMES as u32);
        QUEUE_DESCRIPTORS.write(address(&self.descriptors));
        QUEUE_OFFERED.write(address(&self.offered));
        QUEUE_USED.write(address(&self.used));
        QUEUE_READY.write(1);
    }

    /// Gives the device a descriptor, with its buffer.
    fn offer(&self, number: u32, descriptor: usize) {
        let count = self.offered.count.load(Ordering::Relaxed);
        self.offered.ring[usize::from(count) % FRAMES].store(descriptor as u16, Ordering::Relaxed);
        // The order matters: first the entry, then the count, then the notification.
        fence(Ordering::SeqCst);
        self.offered.count.store(count.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        QUEUE_NOTIFY.write(number);
    }

    /// Returns how many descriptors the device has used since the count was `seen`.
    fn used_since(&self, seen: u16) -> u16 {
        let count = self.used.count.load(Ordering::Relaxed);
        fence(Ordering::SeqCst);
        count.wrapping_sub(seen)
    }
}

/// The network, not running yet.
pub struct EthernetPort {
    _private: (),
}

impl EthernetPort {
    pub(crate) const fn new() -> Self {
        Self { _private: () }
    }

    /// Starts the network. It receives frames for any address.
    pub fn start(self, _address: [u8; 6]) -> Ethernet {
        if DEVICE_ID.read() != NETWORK {
            crate::end::fail(b"board: no network\n");
        }
        STATUS.write(0);
        STATUS.write(STATUS_ACKNOWLEDGED | STATUS_DRIVER);
        FEATURES_SELECT.write(0);
        FEATURES.write(0);
        FEATURES_SELECT.write(1);
        FEATURES.write(FEATURES_32_VERSION_1);
        STATUS.modify(|status| status | STATUS_FEATURES_OK);
        RECEIVED.start(RECEIVE, DEVICE_WRITES);
        SENT.start(SEND, 0);
        SENT.offered.flags.store(NO_INTERRUPT, Ordering::Relaxed);
        STATUS.modify(|status| status | STATUS_DRIVER_OK);
        for descriptor in 0..FRAMES {
            RECEIVED.offer(RECEIVE, descriptor);
        }
        trap::unmask(trap::NETWORK);
        Ethernet { received: 0 }
    }
}

/// The network.
pub struct Ethernet {
    /// The number of frames received so far.
    received: u16,
}

impl Ethernet {
    /// Returns `true` if a frame has arrived.
    pub fn has_frame(&self) -> bool {
        RECEIVED.used_since(self.received) > 0
    }

    /// Takes the next frame, and returns its length. Drops a frame longer than `buffer`. Never waits.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        while self.has_frame() {
            let (number, length) = &RECEIVED.used.ring[usize::from(self.received) % FRAMES];
            self.received = self.received.wrapping_add(1);
            let number = number.load(Ordering::Relaxed) as usize % FRAMES;
            let length = (length.load(Ordering::Relaxed) as usize).saturating_sub(BEFORE);
            let frame = buffer.get_mut(..length).filter(|frame| frame.len() >= HEADER);
            let taken = frame.is_some();
            for (place, byte) in frame.into_iter().flatten().zip(RECEIVED.buffers[number].iter().skip(BEFORE)) {
                *place = byte.load(Ordering::Relaxed);
            }
            RECEIVED.offer(RECEIVE, number);
            if taken {
                return Some(length);
            }
        }
        None
    }

    /// Returns `true` if [`send`](Self::send) would take a frame.
    pub fn can_send(&self) -> bool {
        // The number of frames under way.
        let offered = SENT.offered.count.load(Ordering::Relaxed);
        offered.wrapping_sub(SENT.used.count.load(Ordering::Relaxed)) < FRAMES as u16
    }

    /// Sends a frame. Returns `false` and sends nothing if too many frames are under way, or if the frame is
    /// invalid. Never waits.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        if !(HEADER..=LONGEST).contains(&frame.len()) || !self.can_send() {
            return false;
        }
        // The device sends frames in order.
        let number = usize::from(SENT.offered.count.load(Ordering::Relaxed)) % FRAMES;
        for (place, byte) in SENT.buffers[number].iter().skip(BEFORE).zip(frame) {
            place.store(*byte, Ordering::Relaxed);
        }
        SENT.descriptors[number].length.store((BEFORE + frame.len()) as u32, Ordering::Relaxed);
        SENT.offer(SEND, number);
        true
    }

    /// Sleeps until a frame arrives or the clock ticks. Returns at once if there is a frame.
    pub fn wait(&mut self) {
        // Interrupts are off, so no interrupt is missed between the check and the sleep. A pending one still ends
        // the sleep.
        trap::alone(|| {
            if !self.has_frame() {
                trap::sleep();
            }
        });
    }
}

/// Handles the interrupt of the network. The main program then checks for frames itself.
pub(super) fn on_interrupt() {
    INTERRUPT_ACK.write(INTERRUPT_STATUS.read());
}
