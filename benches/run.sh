#!/usr/bin/env bash
# Measures calc, the smallest server, next to the floor (benches/src/bin/floor.rs), and the engine alone. About two
# minutes; everything is bounded. Rates move with whatever else the machine does: compare within one run only.
#
# usage: benches/run.sh [--server NAME=PROGRAM]...     more servers with the same tools, in the same rounds
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
more=()
while [ $# -gt 0 ]; do
  case $1 in
    --server) more+=("$2"); shift 2 ;;
    *) sed -n '2,6p' "$0" >&2; exit 2 ;;
  esac
done
cargo build --quiet --profile fast -p mcp-sansio-bench --features http
cargo build --quiet --profile small -p mcp-sansio-bench --features http --bin calc
cargo build --quiet --profile small -p mcp-sansio-bench --bin calc-stdio --bin floor
fast=$target/fast
servers=("floor=$fast/floor" "calc=$fast/calc" "${more[@]}")

echo "$(rustc --version), $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg)"
echo
timeout 60 "$fast/engine"
echo
timeout 60 "$fast/engine" allocations
echo
timeout 300 taskset -c 0 "$fast/driver" load "${servers[@]}"
echo
timeout 60 "$fast/http" allocations
echo
timeout 120 "$fast/http" load "floor=$fast/floor-http" "calc=$fast/calc"
echo
timeout 60 "$fast/driver" memory "${servers[@]}"
echo
echo "| footprint | floor | calc over stdio | calc over stdio and HTTP |"
echo "|---|---|---|---|"
size() { stat -c %s "$1" | awk '{ printf "%.0f KiB", $1 / 1024 }'; }
# All that a program like calc is built from: the adapter, the core, serde with its derive.
crates() { cargo tree --quiet -p mcp-sansio-bench -e normal --prefix none "$@" | sed 's/ .*//' | sort -u | grep -cvxE 'mcp-sansio-bench|serde_json|itoa|zmij|ryu'; }
echo "| stripped, for size | $(size "$target/small/floor") | $(size "$target/small/calc-stdio") | $(size "$target/small/calc") |"
echo "| crates in the normal tree | | $(crates) | $(crates --features http) |"
