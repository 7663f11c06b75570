//! Links with the memory map that embassy-stm32 brings.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        for argument in ["--nmagic", "-Tlink.x"] {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
    }
}
