#!/usr/bin/env bash
# Builds and tests each package of examples/templates as its user would, with the packages that `.ci/run package` has
# packed: what is missing in one of them fails here. Each is first copied out of the clone, as its README says; that of `cli` is built with
# the crates of the clone.
#   tests/templates.sh [NAME..]     default: all
set -euo pipefail
cd "$(dirname "$0")/.."
packed=$PWD/target/published/package work=$PWD/target/templates
[ $# -gt 0 ] || set -- cli smol-http axum pico

compgen -G "$packed/*.crate" >/dev/null || { echo "no packages in $packed: run .ci/run package first" >&2; exit 1; }
mkdir -p "$work/crates"
patch=()
for crate in "$packed"/*.crate; do
  name=$(basename "$crate" .crate)
  # All files in archives have the same time, and by the times cargo finds what has changed: that gets the time of now.
  rm -rf "$work/new" && mkdir "$work/new"
  tar -xzmf "$crate" -C "$work/new"
  if ! diff -rq "$work/new/$name" "$work/crates/$name" >/dev/null 2>&1; then
    rm -rf "${work:?}/crates/$name"
    mv "$work/new/$name" "$work/crates/$name"
  fi
  patch+=(--config "patch.crates-io.${name%-[0-9]*}.path=\"$work/crates/$name\"")
done

# The Pico's host talks to it through a copy of this file, so that the template is complete.
cmp examples/firmware/serial.sh examples/templates/pico/serial.sh

export CARGO_TARGET_DIR=$work/target
far=$(mktemp -d)
trap 'rm -rf "$far"' EXIT
for template in "$@"; do
  echo "templates: $template"
  copy=$(grep -o 'examples/templates/copy.sh [a-z-]* ~/[a-z]*' "examples/templates/$template/README.md")
  HOME=$far bash -c "$copy"
  copied=$far/${copy##*/}
  if grep -n '^mcp-sansio' "$copied/Cargo.toml" | grep -v 'path = "/'; then echo "not placed by $copy" >&2; exit 1; fi
  if [ "$template" = cli ]; then
    cp Cargo.lock "$copied"
    (cd "$copied" && cargo run -q -- count README.md)
  fi
  rm -rf "${work:?}/$template"
  cp -a "examples/templates/$template" "$work"
  # As it is when the crates are published.
  sed -i 's/, path = "[^"]*"//' "$work/$template/Cargo.toml"
  # Templates have no lock file: who copies one gets the newest versions. The gate takes those of the examples, which are
  # on this machine and stay the same.
  if [ "$template" = pico ]; then lock=examples/firmware/pico/Cargo.lock; else lock=Cargo.lock; fi
  cp "$lock" "$work/$template/Cargo.lock"
  # The tests of the Pico's tools are for this machine, its `main` is for the chip.
  if [ "$template" = pico ]; then targets=(--lib --tests); else targets=(--all-targets); fi
  (
    cd "$work/$template"
    cargo fmt --check
    cargo clippy -q "${patch[@]}" "${targets[@]}" -- -D warnings
    cargo test -q "${patch[@]}"
    [ "$template" = pico ] || exit 0
    rustup target add thumbv6m-none-eabi || { echo "left out: no rustup, or no thumbv6m-none-eabi" >&2; exit 0; }
    RUSTFLAGS="-D warnings" cargo build -q "${patch[@]}" --release --target thumbv6m-none-eabi
  )
done
