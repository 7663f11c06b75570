//! Runs the body of a target over files, on any toolchain: `cargo run --example replay -- TARGET FILE...`

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some((_, body)) = mcp_sansio_fuzz::TARGETS.iter().find(|(target, _)| name == *target) else {
        eprintln!("there is no target {}", name.display());
        std::process::exit(2);
    };
    for file in arguments {
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        body(&bytes);
    }
}
