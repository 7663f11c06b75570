//! The examples, as programs that a test starts.

use std::path::PathBuf;
use std::process::Command;

/// Returns the path of an example that is built as this test is. Builds it if it is not there: `cargo test` builds the examples
/// of the tested package, `cargo test --test NAME` does not.
pub(crate) fn example(name: &str) -> PathBuf {
    let path = profile().join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.exists() {
        build(&[name]);
    }
    path
}

/// Builds examples as `cargo test --workspace` builds them, also if they are there, since they may be old.
pub(crate) fn build(names: &[&str]) {
    let folder = profile();
    let profile = folder.file_name().and_then(|name| name.to_str()).expect("the folder of a profile");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--workspace"]);
    cargo.args(names.iter().flat_map(|name| ["--example", name]));
    cargo.args(["--profile", if profile == "debug" { "dev" } else { profile }]);
    cargo.arg("--target-dir").arg(folder.parent().expect("the target folder"));
    assert!(cargo.status().expect("cargo runs").success());
}

/// Returns the folder of this test's profile: `target/debug`.
fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    test.ancestors().nth(2).expect("it is in deps, in the folder of its profile").to_owned()
}
