//! Links with the linker script of the board (on ARM that of cortex-m-rt), from any directory in which cargo runs.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rerun-if-changed=build.rs");
}
