//! Links with the linker script of cortex-m-rt, from any directory in which cargo runs.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rerun-if-changed=build.rs");
}
