//! Puts the linker scripts where the linker looks, for whoever links this crate.

use std::{env, fs, path::PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for script in ["memory.x", "device.x"] {
        fs::copy(script, out.join(script)).expect("OUT_DIR can be written");
        println!("cargo:rerun-if-changed={script}");
    }
    println!("cargo:rustc-check-cfg=cfg(armv6m)");
    if env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv6m")) {
        println!("cargo:rustc-cfg=armv6m");
    }
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed=build.rs");
}
