//! Links with the linker script of cortex-m-rt, or with the few lines that a machine needs which is never run.

use std::{env, fs, path::PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "arm") {
        println!("cargo:rustc-link-arg-bins=-Tlink.x");
    } else {
        fs::copy("link-only.x", out.join("link-only.x")).expect("OUT_DIR can be written");
        println!("cargo:rustc-link-search={}", out.display());
        println!("cargo:rustc-link-arg-bins=-Tlink-only.x");
    }
    println!("cargo:rerun-if-changed=link-only.x");
    println!("cargo:rerun-if-changed=build.rs");
}
