//! Links with the linker script of cortex-m-rt, from whatever directory cargo is called.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rerun-if-changed=build.rs");
}
