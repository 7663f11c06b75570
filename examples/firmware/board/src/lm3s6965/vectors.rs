//! The table of device interrupts (data sheet, table 2-9). Exceptions and the
//! reset vector are cortex-m-rt's.

/// The device's interrupts that this crate handles.
#[derive(Clone, Copy)]
pub(crate) enum Interrupt {
    Uart0 = 5,
    #[cfg(feature = "timer")]
    Timer1A = 21,
    #[cfg(all(feature = "ethernet", not(armv6m)))]
    Ethernet = 42,
}

// SAFETY: the variants are numbers of interrupts that the table below has.
unsafe impl cortex_m::interrupt::InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

/// Entries up to the last interrupt that is handled: the chip has 44, but none comes that was not let in.
const INTERRUPTS: usize = 1 + if cfg!(all(feature = "ethernet", not(armv6m))) {
    42
} else if cfg!(feature = "timer") {
    21
} else {
    Interrupt::Uart0 as usize
};

type Handler = unsafe extern "C" fn();

unsafe extern "C" {
    // cortex-m-rt's; the entry of every interrupt that is not used.
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

// SAFETY: cortex-m-rt's linker script puts this section behind the exceptions
// and asks for this name; the entries are what the hardware expects there,
// addresses of functions without arguments that return to the interrupted code.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Handler; INTERRUPTS] = table();
