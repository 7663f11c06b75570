#!/usr/bin/env bash
# Fuzzes each target for so many seconds (default 20), from the committed corpus; the corpus itself is left alone.
# What is found is in fuzz/artifacts, to be run again with: cargo +nightly fuzz run --features libfuzzer TARGET FILE
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-20}
version=0.13.2

# The bodies over the corpus and some noise, on stable, with overflow checks.
cargo test --quiet --lib

cargo fuzz --version 2>/dev/null | grep -q "$version" || cargo install --quiet --locked cargo-fuzz@$version
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
for target in $(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | tail -n +2); do
  mkdir -p "$found/$target"
  echo "fuzzing $target for $seconds s"
  cargo +nightly fuzz run --features libfuzzer "$target" "$found/$target" "corpus/$target" -- \
    -max_total_time="$seconds" -timeout=10 -max_len=4096 -print_final_stats=0 -print_funcs=0 -verbosity=0
done
