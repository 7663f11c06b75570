//! Puts the linker scripts where the linker looks, for whoever links this crate.

use std::{env, fs, path::PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let stack = if env::var_os("CARGO_FEATURE_SMALL_STACK").is_some() { "10K" } else { "16K" };
    let memory = fs::read_to_string("memory.x").expect("memory.x can be read");
    let memory = format!("STACK_LENGTH = {stack};\n{memory}");
    let device = fs::read_to_string("device.x").expect("device.x can be read");
    for (script, text) in [("memory.x", memory), ("device.x", device)] {
        fs::write(out.join(script), text).expect("OUT_DIR can be written");
        println!("cargo:rerun-if-changed={script}");
    }
    println!("cargo:rustc-check-cfg=cfg(armv6m)");
    if env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv6m")) {
        println!("cargo:rustc-cfg=armv6m");
    }
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed=build.rs");
}
