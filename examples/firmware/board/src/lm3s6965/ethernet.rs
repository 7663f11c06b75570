//! The Ethernet controller: sends and receives frames through its two FIFOs.
//!
//! The interrupt handler only ends a sleep. Frames stay in the controller (2 KiB on the chip, 31 frames in QEMU)
//! until the main program takes them. The number of the interrupt is 42, and an ARMv6-M has at most 32: in code for
//! it, the clock's tick ends the sleep every millisecond.

use super::system;
#[cfg(not(armv6m))]
use super::vectors::Interrupt;
use crate::mmio::Reg;

// SAFETY: registers of the Ethernet controller, data sheet chapter 15; it has no DMA and never accesses memory.
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
/// All events that can be acknowledged.
const INT_ALL: u32 = 0x7F;

const RCTL_ON: u32 = 1;
const RCTL_DROP_BAD_CRC: u32 = 1 << 3;
const RCTL_RESET: u32 = 1 << 4;

const TCTL_ON: u32 = 1;
const TCTL_PAD: u32 = 1 << 1;
const TCTL_CRC: u32 = 1 << 2;
const TCTL_DUPLEX: u32 = 1 << 4;

/// The receive FIFO adds the length (two bytes) before a frame, and the checksum (four bytes) after it.
const AROUND: usize = 2 + 4;

/// The length of a frame's header. The transmitter does not count it.
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

    /// Starts the controller with this MAC address.
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
    /// Returns `true` if a frame has arrived.
    pub fn has_frame(&self) -> bool {
        NP.read() != 0
    }

    /// Takes the next frame, without its checksum, and returns its length. Drops a frame longer than `buffer`.
    /// Never waits.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if RIS.read() & INT_FOV != 0 {
            // Otherwise the rest of a frame that is too long would be read as the next frame.
            RCTL.write(RCTL_ON | RCTL_DROP_BAD_CRC | RCTL_RESET);
            RIS.write(INT_FOV);
        }
        while self.has_frame() {
            let first = DATA.read();
            let total = (first & 0xFFFF) as usize;
            let length = total.saturating_sub(AROUND);
            let [_, _, low, high] = first.to_le_bytes();
            // The words after the first one, which holds two bytes of the frame.
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

    /// Returns `true` if [`send`](Self::send) would take a frame.
    pub fn can_send(&self) -> bool {
        TR.read() & 1 == 0
    }

    /// Sends a frame, without its checksum. Returns `false` and sends nothing if the previous frame is still being
    /// sent, or if the frame is invalid. Never waits.
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

    /// Sleeps until a frame arrives or the clock ticks. Returns at once if there is a frame.
    pub fn wait(&mut self) {
        // Interrupts are off, so no interrupt is missed between the check and the sleep. A pending one still ends
        // the sleep.
        cortex_m::interrupt::free(|_| {
            IM.write(INT_RX);
            if !self.has_frame() {
                cortex_m::asm::wfi();
            }
        });
    }
}

/// Handles the interrupt of the Ethernet controller. The main program then checks for frames itself.
#[cfg(not(armv6m))]
pub(crate) unsafe extern "C" fn on_interrupt() {
    IM.write(0);
    RIS.write(INT_RX);
}
