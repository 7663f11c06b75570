#!/usr/bin/env bash
# Fuzzes each target, from the committed corpus, which is left alone.
#
#   fuzz/run.sh                       # the gate: the same inputs each time, a fixed number of them from a fixed seed
#   fuzz/run.sh SECONDS [TARGET...]   # to find something new: so many seconds each, from a seed of its own
#   fuzz/run.sh --build               # builds the program and prints its path
#
# With SECONDS the new inputs stay in fuzz/found/TARGET, where the next run begins with them.
#
# What is found is in fuzz/artifacts/TARGET, to be run again with: FUZZ_TARGET=TARGET $(fuzz/run.sh --build) FILE
# Once it is fixed, it stays in fuzz/corpus/TARGET under a name that tells what it was: the tests of fuzz/ and the gate
# begin with all of those.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

# All targets are one program, built once, as `cargo fuzz` would build it. Prints its path.
build() {
  local host
  host=$(rustc -vV | sed -n 's/^host: //p')
  RUSTFLAGS="--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions" \
    cargo +nightly build --quiet --release --target "$host" --features libfuzzer --bin fuzz >&2
  echo "${CARGO_TARGET_DIR:-$PWD/target}/$host/release/fuzz"
}
if [ "${1:-}" = --build ]; then build; exit; fi

seconds=${1:-}
# A thousand inputs run in less time than full optimisation takes to compile.
[ -n "$seconds" ] || export CARGO_PROFILE_RELEASE_OPT_LEVEL=1
targets=("${@:2}")
# Each has a folder with its corpus; a test compares the folders with the table in src/lib.rs.
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls corpus)

# How many inputs the gate tries beyond the corpus: 1,000, or 300 of those that take milliseconds each. The time is only a bound, for a
# machine that is slow.
declare -A runs=([http]=300 [http_client]=300 [tasks]=300 [old_tasks]=300)
bound=120

# Where things are in memory leaves traces in what is tried next.
steady=()
if setarch -R true 2>/dev/null; then steady=(setarch -R); fi

# The bodies over the corpus and some noise, on stable, with overflow checks.
cargo test --quiet --lib

program=$(build)
if [ -n "$seconds" ]; then
  found=$PWD/found
else
  found=$(mktemp -d)
  trap 'rm -rf "$found"' EXIT
fi
for target in "${targets[@]}"; do
  mkdir -p "$found/$target"
  if [ -n "$seconds" ]; then
    echo "fuzzing $target for $seconds s"
    how=("-max_total_time=$seconds")
  else
    echo "fuzzing $target with ${runs[$target]:-1000} inputs"
    # Reading its own findings again would depend on the clock.
    how=(-seed=1 -reload=0 "-runs=${runs[$target]:-1000}" "-max_total_time=$bound")
  fi
  # By name: the order of a folder is not the same everywhere.
  seeds=$(find "corpus/$target" -type f | LC_ALL=C sort | paste -sd,)
  mkdir -p "artifacts/$target"
  FUZZ_TARGET=$target "${steady[@]}" "$program" "$found/$target" "${how[@]}" "-artifact_prefix=artifacts/$target/" \
    -seed_inputs="$seeds" -timeout=10 -max_len=4096 -print_final_stats=0 -print_funcs=0 -verbosity=0
done
