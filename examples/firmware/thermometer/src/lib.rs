//! The common part of the thermometers on a UART: a simulated sensor, and a history that is larger than the RAM.

#![no_std]
#![forbid(unsafe_code)]

pub mod history;
pub mod sensor;
