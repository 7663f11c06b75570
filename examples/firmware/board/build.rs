//! Puts the linker scripts into the linker's search path, for the programs that link this crate.

use std::{env, fs, path::PathBuf};

fn main() {
    let stack = if env::var_os("CARGO_FEATURE_SMALL_STACK").is_some() { "9K" } else { "16K" };
    let target = env::var("TARGET").expect("cargo sets TARGET");
    println!("cargo:rustc-check-cfg=cfg(armv6m)");
    if target.starts_with("riscv") {
        // Programs ask for this name: it is the name of cortex-m-rt's script.
        put("virt.x", "link.x", stack);
    } else {
        put("memory.x", "memory.x", stack);
        put("device.x", "device.x", stack);
    }
    if target.starts_with("thumbv6m") {
        println!("cargo:rustc-cfg=armv6m");
    }
    println!("cargo:rerun-if-changed=build.rs");
}

fn put(script: &str, name: &str, stack: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let text = fs::read_to_string(script).expect("the script can be read");
    fs::write(out.join(name), format!("STACK_LENGTH = {stack};\n{text}")).expect("OUT_DIR can be written");
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rustc-link-search={}", out.display());
}
