#!/usr/bin/env bash
# Measures calc, the smallest server, next to the same two tools on rmcp, and to the floor: a program without any MCP library
# (benches/src/bin/floor.rs). Over stdio; every answer is checked; everything is bounded: about four minutes once built.
# Rates move with whatever else the machine does: compare within one run only. The rest does not move.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
fast=$CARGO_TARGET_DIR/fast small=$CARGO_TARGET_DIR/small
servers=(floor calc-stdio bench-rmcp-server)

for profile in fast small; do
  cargo build --quiet --profile $profile -p mcp-sansio-bench --bin calc-stdio --bin floor --bin driver
  (cd benches/rmcp-server && cargo build --quiet --locked --profile $profile)
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
programs=("${servers[@]/#/$fast/}")
named=()
for place in "${!servers[@]}"; do named+=("${servers[$place]}=${programs[$place]}"); done

instructions() { # SERVER KIND: of one answer; starting up cancels out
  local kind=$2 n=1000 counts=() times
  for times in 1 3; do
    "$fast/driver" lines "$kind" $((times * n)) >"$scratch/lines"
    counts+=("$(timeout 120 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$fast/$1" <"$scratch/lines" 2>&1 >/dev/null |
      sed -n 's/.*Collected : //p')")
  done
  echo $(((counts[1] - counts[0]) / (2 * n)))
}

cell() { # FILE WHICH-ROW COLUMN: of a table of the driver's
  awk -F' *[|] *' -v which="$2" -v column="$3" '$0 ~ which { print $column }' "$scratch/$1"
}
load() { cell load "^[|] $2 [|] $3 [|] $1 [|]" 5; }
ratio() { cell load "^[|] $2 [|] $3 [|] $1 [|]" 6; }
memory() { cell memory "^[|] $1 [|]" "$2"; }
size() { stat -c %s "$small/$1" | awk '{ printf "%.0f KiB", $1 / 1024 }'; }
crates() { # Without what only the benchmark itself needs
  case $1 in
    calc-stdio) cargo tree --quiet -p mcp-sansio-bench -e normal --prefix none | sed 's/ .*//' | sort -u | grep -cvxE 'mcp-sansio-bench|serde_json|itoa|zmij|ryu' ;;
    bench-*) (cd benches/rmcp-server && cargo tree --quiet --locked -e normal --prefix none) | sed 's/ .*//' | sort -u | grep -cvx bench-rmcp-server ;;
  esac
}
each() { # TITLE FUNCTION ARGS...: a row with one figure for each server
  local title=$1 server figures=()
  shift
  for server in "${servers[@]}"; do figures+=("$("$1" "$server" "${@:2}")"); done
  echo "| $title | ${figures[0]} | ${figures[1]} | ${figures[2]} |"
}

timeout 400 taskset -c 0 "$fast/driver" load "${named[@]}" >"$scratch/load"
timeout 120 taskset -c 0 "$fast/driver" memory "${named[@]}" >"$scratch/memory"
echo "$(rustc --version), $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg)"
echo
echo "| | floor | calc | rmcp 3.9 |"
echo "|---|---:|---:|---:|"
each "calls per second, one at a time" load echo32 1
each "calls per second, 64 in flight" load echo32 64
each "as a multiple of the floor's" ratio echo32 64
each "calls per second with 64 KiB of text" load plain64k 1
if command -v valgrind >/dev/null; then
  each "instructions per call" instructions echo32
  each "instructions per call of 2026-07-28" instructions modern32
fi
each "start to first answer, ms" memory 3
each "idle, KiB" memory 4
each "peak with one message of 1 MiB, KiB" memory 5
each "binary, stripped, for size" size
each "crates in the normal tree" crates
