#!/usr/bin/env bash
# Builds and tests each package of examples/templates as its user would, with the packages that `.ci/run package` has
# packed: what is missing in one of them fails here. Each is first copied out of the clone, as its README says; that of `cli` is built with
# the crates of the clone.
#   tests/templates.sh [--write] [NAME..]     default: all; --write puts the sizes of boards into docs/footprint.md
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD packed=$PWD/target/published/package work=$PWD/target/templates
write=
[ "${1-}" != --write ] || { write=$1; shift; }
[ $# -gt 0 ] || set -- cli smol-http axum pico esp32c3 nrf52840 stm32f411
declare -A chips=([pico]=thumbv6m-none-eabi [esp32c3]=riscv32imc-unknown-none-elf [nrf52840]=thumbv7em-none-eabihf [stm32f411]=thumbv7em-none-eabihf)

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

# With what `.ci/run package` has compiled of others.
export CARGO_TARGET_DIR=$root/target/published
far=$(mktemp -d)
trap 'rm -rf "$far"' EXIT
for template in "$@"; do
  echo "templates: $template"
  copy=$(grep -o 'examples/templates/copy.sh [a-z0-9-]* ~/[a-z]*' "examples/templates/$template/README.md")
  HOME=$far bash -c "$copy"
  copied=$far/${copy##*/}
  if grep -n '^mcp-sansio' "$copied/Cargo.toml" | grep -v 'path = "/'; then echo "not placed by $copy" >&2; exit 1; fi
  if [ "$template" = cli ]; then
    cp Cargo.lock "$copied"
    (cd "$copied" && cargo run -q -- count README.md)
  fi
  rm -rf "${work:?}/$template"
  cp -aL "examples/templates/$template" "$work"
  # As it is when the crates are published.
  sed -i 's/, path = "[^"]*"//' "$work/$template/Cargo.toml"
  # Templates have no lock file: who copies one gets the newest versions. The gate takes those of the examples, which are
  # on this machine and stay the same, and those of the HALs that are in tests/templates.
  chip=${chips[$template]-} lock=Cargo.lock
  [ "$template" != pico ] || lock=examples/firmware/pico/Cargo.lock
  [ ! -f "tests/templates/$template.lock" ] || lock=tests/templates/$template.lock
  cp "$lock" "$work/$template/Cargo.lock"
  # The tests of the Pico's tools are for this machine, its `main` is for the chip. Other boards have the same tools.
  if [ "$template" = pico ]; then targets=(--lib --tests); else targets=(--all-targets); fi
  (
    cd "$work/$template"
    cargo fmt --check
    if [ -z "$chip" ] || [ "$template" = pico ]; then
      cargo clippy -q "${patch[@]}" "${targets[@]}" -- -D warnings
      cargo test -q "${patch[@]}"
    fi
    [ -n "$chip" ] || exit 0
    rustup target add "$chip" || { echo "left out: no rustup, or no $chip" >&2; exit 0; }
    # All boards are packages of one name: in one directory cargo would take one for the other.
    [ "$template" = pico ] || export CARGO_TARGET_DIR=$work/target-$template
    RUSTFLAGS="-D warnings" cargo build -q "${patch[@]}" --release --target "$chip"
    "${PYTHON:-python3}" "$root/tests/bare_metal/boards.py" "$template" "$CARGO_TARGET_DIR/$chip/release/board" $write
  )
done
