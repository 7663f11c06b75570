#!/usr/bin/env bash
# Fuzzes each target, from the committed corpus, which is left alone.
#
#   fuzz/run.sh                       # the gate: the same inputs each time, a fixed number of them from a fixed seed
#   fuzz/run.sh SECONDS [TARGET...]   # to find something new: so many seconds each, from a seed of its own
#
# With SECONDS the new inputs stay in fuzz/found/TARGET, where the next run begins with them.
#
# What is found is in fuzz/artifacts, to be run again with: cargo +nightly fuzz run --features libfuzzer TARGET FILE
# Once it is fixed, it stays in fuzz/corpus/TARGET under a name that tells what it was: the tests of fuzz/ and the gate
# begin with all of those.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | tail -n +2)
version=0.13.2

# How many inputs the gate tries: three to ten seconds' worth on one core. The time is only a bound, for a machine that is slow.
# 2,000 of those that are not here.
declare -A runs=([line]=35000 [scan]=25000 [envelope]=25000 [http_wire]=15000 [tokens]=7000 [tasks]=700 [form]=15000 [cache]=4000 [params]=15000 [arguments]=7000 [old_tasks]=700 [client]=8000 [sse]=35000 [challenge]=100000 [skills]=20000 [event_polls]=4000 [schema]=10000)
bound=120

# Where things are in memory leaves traces in what is tried next.
steady=()
if setarch -R true 2>/dev/null; then steady=(setarch -R); fi

# The bodies over the corpus and some noise, on stable, with overflow checks.
cargo test --quiet --lib

cargo fuzz --version 2>/dev/null | grep -q "$version" || cargo install --quiet --locked cargo-fuzz@$version
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
    echo "fuzzing $target with ${runs[$target]:-2000} inputs"
    # Reading its own findings again would depend on the clock.
    how=(-seed=1 -reload=0 "-runs=${runs[$target]:-2000}" "-max_total_time=$bound")
  fi
  # By name: the order of a folder is not the same everywhere.
  seeds=$(find "corpus/$target" -type f | LC_ALL=C sort | paste -sd,)
  "${steady[@]}" cargo +nightly fuzz run --features libfuzzer "$target" "$found/$target" -- "${how[@]}" \
    -seed_inputs="$seeds" -timeout=10 -max_len=4096 -print_final_stats=0 -print_funcs=0 -verbosity=0
done
