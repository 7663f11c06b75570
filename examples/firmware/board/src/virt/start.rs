//! The code from the start of the machine to `main`.

use core::arch::global_asm;

/// The value that the start-up code paints the stack with.
pub(crate) const STACK_PAINT_VALUE: u32 = 0xCCCC_CCCC;

// The symbols come from the linker script; all are multiples of four.
//
// First the memory used as flash is locked against writing (pmpcfg: locked, a naturally aligned power of two,
// executable and readable). So a stack that grows too far causes a fault, as on the other board.
global_asm!(
    ".section .start, \"ax\"",
    ".global _start",
    "_start:",
    "la t0, _flash_range",
    "csrw pmpaddr0, t0",
    "li t0, 0x9D",
    "csrw pmpcfg0, t0",
    "la sp, _stack_start",
    "la t0, _stack_end",
    "li t1, {paint}",
    "1: sw t1, 0(t0)",
    "addi t0, t0, 4",
    "bltu t0, sp, 1b",
    "la t0, _data_start",
    "la t1, _data_end",
    "la t2, _data_source",
    "j 3f",
    "2: lw t3, 0(t2)",
    "sw t3, 0(t0)",
    "addi t0, t0, 4",
    "addi t2, t2, 4",
    "3: bltu t0, t1, 2b",
    "la t1, _bss_end",
    "j 5f",
    "4: sw zero, 0(t0)",
    "addi t0, t0, 4",
    "5: bltu t0, t1, 4b",
    "tail main",
    ".text",
    paint = const STACK_PAINT_VALUE,
);
