//! The Ethernet controller: frames in and out, through its two FIFOs.
//!
//! The interrupt handler only ends a sleep: frames stay in the controller (2 KiB on the chip, 31 frames in QEMU) until
//! they are asked for. Its number is 42, and an ARMv6-M has 32 at the most: in code for that it is the clock's tick, each
//! millisecond, that ends the sleep.

use super::system;
#[cfg(not(armv6m))]
use super::vectors::Interrupt;
use crate::mmio::Reg;

// SAFETY: registers of the Ethernet controller, data sheet chapter 15; it has no DMA and makes nothing touch memory.
const RIS: Reg = unsafe { Reg::at(0x4004_8000) };
// SAFETY: see above.
const IM: Reg = unsafe { Reg::at(0x4004_8004) };
// SAFETY: see above.
const RCTL: Reg = unsafe { Reg::at(0x4004_8008) };
// SAFETY: see above.
const TCTL: Reg = unsafe { Reg::at(0x4004_800C) };
// SAFETY: see above.
const DATA: Reg = unsafe { Reg::at(0x4004_8010) };
// SAFETY: see above.
const IA0: Reg = unsafe { Reg::at(0x4004_8014) };
// SAFETY: see above.
const IA1: Reg = unsafe { Reg::at(0x4004_8018) };
// SAFETY: see above.
const NP: Reg = unsafe { Reg::at(0x4004_8034) };
// SAFETY: see above.
const TR: Reg = unsafe { Reg::at(0x4004_8038) };

const INT_RX: u32 = 1;
/// The receive FIFO overran.
const INT_FOV: u32 = 1 << 3;
/// What can be acknowledged.
const INT_ALL: u32 = 0x7F;

const RCTL_ON: u32 = 1;
const RCTL_DROP_BAD_CRC: u32 = 1 << 3;
const RCTL_RESET: u32 = 1 << 4;

const TCTL_ON: u32 = 1;
const TCTL_PAD: u32 = 1 << 1;
const TCTL_CRC: u32 = 1 << 2;
const TCTL_DUPLEX: u32 = 1 << 4;

/// In the receive FIFO a frame stands between its length, of two bytes, and its checksum, of four.
const AROUND: usize = 2 + 4;

/// The header of a frame, which the transmitter does not count.
const HEADER: usize = 14;

/// The longest frame, without its checksum.
const LONGEST: usize = 1514;

/// The Ethernet controller, not running yet.
pub struct EthernetPort {
    _private: (),
}

impl EthernetPort {
    pub(crate) const fn new() -> Self {
        Self { _private: () }
    }

    /// Starts it, with this address of its own.
    pub fn start(self, address: [u8; 6]) -> Ethernet {
        system::start_ethernet();
        let [a, b, c, d, e, f] = address;
        IM.write(0);
        RCTL.write(RCTL_RESET);
        RIS.write(INT_ALL);
        IA0.write(u32::from_le_bytes([a, b, c, d]));
        IA1.write(u32::from_le_bytes([e, f, 0, 0]));
        TCTL.write(TCTL_ON | TCTL_PAD | TCTL_CRC | TCTL_DUPLEX);
        RCTL.write(RCTL_ON | RCTL_DROP_BAD_CRC);
        // SAFETY: the handler is in place, and shares nothing with the main program.
        #[cfg(not(armv6m))]
        unsafe {
            cortex_m::peripheral::NVIC::unmask(Interrupt::Ethernet)
        };
        Ethernet { _private: () }
    }
}

/// The Ethernet controller.
pub struct Ethernet {
    _private: (),
}

impl Ethernet {
    /// Whether a frame has come.
    pub fn has_frame(&self) -> bool {
        NP.read() != 0
    }

    /// Takes a frame that has come, without its checksum; its length. A frame longer than `buffer` is dropped. Never waits.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if RIS.read() & INT_FOV != 0 {
            // What is left of a frame that did not fit would be taken for the next one.
            RCTL.write(RCTL_ON | RCTL_DROP_BAD_CRC | RCTL_RESET);
            RIS.write(INT_FOV);
        }
        while self.has_frame() {
            let first = DATA.read();
            let total = (first & 0xFFFF) as usize;
            let length = total.saturating_sub(AROUND);
            let [_, _, low, high] = first.to_le_bytes();
            // The words after the first one, which has two bytes of the frame.
            let words = total.saturating_sub(4).div_ceil(4).min(512);
            let Some(frame) = buffer.get_mut(..length).filter(|frame| frame.len() >= HEADER) else {
                for _ in 0..words {
                    let _ = DATA.read();
                }
                continue;
            };
            let mut places = frame.iter_mut();
            for (place, byte) in places.by_ref().take(2).zip([low, high]) {
                *place = byte;
            }
            for _ in 0..words {
                let bytes = DATA.read().to_le_bytes();
                for (place, byte) in places.by_ref().take(4).zip(bytes) {
                    *place = byte;
                }
            }
            return Some(length);
        }
        None
    }

    /// Whether [`send`](Self::send) would take a frame.
    pub fn can_send(&self) -> bool {
        TR.read() & 1 == 0
    }

    /// Sends a frame, without its checksum. False, and nothing is sent, if the last one is still on its way or this one
    /// is no frame. Never waits.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        if !(HEADER..=LONGEST).contains(&frame.len()) || !self.can_send() {
            return false;
        }
        let [low, high] = ((frame.len() - HEADER) as u16).to_le_bytes();
        let mut word = [low, high, 0, 0];
        let mut filled = 2;
        for byte in frame {
            if let Some(place) = word.get_mut(filled) {
                *place = *byte;
            }
            filled += 1;
            if filled == 4 {
                DATA.write(u32::from_le_bytes(word));
                (word, filled) = ([0; 4], 0);
            }
        }
        if filled > 0 {
            DATA.write(u32::from_le_bytes(word));
        }
        TR.write(1);
        true
    }

    /// Sleeps until a frame has come or the clock ticks. Returns at once if there is a frame.
    pub fn wait(&mut self) {
        // With interrupts off nothing can slip in between the look and the sleep, and a pending interrupt still ends it.
        cortex_m::interrupt::free(|_| {
            IM.write(INT_RX);
            if !self.has_frame() {
                cortex_m::asm::wfi();
            }
        });
    }
}

/// The interrupt of the Ethernet controller: something has come, which the main program sees for itself.
#[cfg(not(armv6m))]
pub(crate) unsafe extern "C" fn on_interrupt() {
    IM.write(0);
    RIS.write(INT_RX);
}
