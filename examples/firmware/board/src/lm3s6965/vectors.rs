//! The table of device interrupts (data sheet, table 2-9). cortex-m-rt has the exceptions and the reset vector.

/// The device's interrupts that this crate handles.
#[derive(Clone, Copy)]
pub(crate) enum Interrupt {
    Uart0 = 5,
    #[cfg(feature = "timer")]
    Timer1A = 21,
    #[cfg(all(feature = "ethernet", not(armv6m)))]
    Ethernet = 42,
}

// SAFETY: the variants are numbers of interrupts in the table below.
unsafe impl cortex_m::interrupt::InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

/// The entries up to the last handled interrupt. The chip has 44, but the others stay disabled.
const INTERRUPTS: usize = 1 + if cfg!(all(feature = "ethernet", not(armv6m))) {
    42
} else if cfg!(feature = "timer") {
    21
} else {
    Interrupt::Uart0 as usize
};

type Handler = unsafe extern "C" fn();

unsafe extern "C" {
    // The entry of cortex-m-rt for every unused interrupt.
    fn DefaultHandler();
}

const fn table() -> [Handler; INTERRUPTS] {
    let mut table: [Handler; INTERRUPTS] = [DefaultHandler; INTERRUPTS];
    table[Interrupt::Uart0 as usize] = super::uart::on_interrupt;
    #[cfg(feature = "timer")]
    {
        table[Interrupt::Timer1A as usize] = super::timer::on_interrupt;
    }
    #[cfg(all(feature = "ethernet", not(armv6m)))]
    {
        table[Interrupt::Ethernet as usize] = super::ethernet::on_interrupt;
    }
    table
}

// SAFETY: cortex-m-rt's linker script puts this section after the exceptions and requires this name. The entries are
// the addresses that the hardware expects: functions without arguments that return to the interrupted code.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Handler; INTERRUPTS] = table();
