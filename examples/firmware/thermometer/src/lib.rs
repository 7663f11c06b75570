//! What the thermometers on a UART have in common: a simulated sensor, and a memory that is larger than their RAM.

#![no_std]
#![forbid(unsafe_code)]

pub mod history;
pub mod sensor;
