#!/usr/bin/env bash
# Measures our clients next to rmcp's: calls of calc's tool `echo`, one after the other, over stdio; the server is a child
# process, the same for all, and all speak 2025-11-25. Everything is bounded: about a minute once built. Rates move with
# whatever else the machine does: compare within one run only. The rest does not move.
#
# usage: benches/client.sh [CALLS]     20000 in each of five rounds
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
calls=${1:-20000}
fast=$CARGO_TARGET_DIR/fast
server=$fast/calc-stdio
names=(client client-smol bench-rmcp-client)

# One at a time: together, each would have the features of all.
cargo build --quiet --profile fast -p mcp-sansio-bench --bin calc-stdio
cargo build --quiet --profile fast -p mcp-sansio-bench --features client --bin client
cargo build --quiet --profile fast -p mcp-sansio-bench --features client-smol --bin client-smol
(cd benches/rmcp-client && cargo build --quiet --locked --profile fast)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

rounds() { # The programs take turns; lines of: program, microseconds to the first answer, calls per second, allocations
  local round name
  for round in 1 2 3 4 5; do
    for name in "${names[@]}"; do
      echo "$name $(timeout 120 taskset -c 0 "$fast/$name" "$calls" "$server")"
    done
  done
}

median() { # PROGRAM COLUMN
  awk -v name="$1" -v column="$2" '$1 == name { print $column }' "$scratch/rounds" | sort -g | sed -n 3p
}

instructions() { # PROGRAM N: of one run, without the server's
  timeout 120 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$fast/$1" "$2" "$server" 2>&1 >/dev/null |
    sed -n 's/.*Collected : //p'
}

per_call() { # PROGRAM: starting up cancels out
  local once thrice
  once=$(instructions "$1" 500)
  thrice=$(instructions "$1" 1500)
  echo $(((thrice - once) / 1000))
}

size() { strip -o "$scratch/stripped" "$fast/$1" && stat -c %s "$scratch/stripped" | awk '{ printf "%.0f KiB", $1 / 1024 }'; }

# All that a program is built from, without what only the benchmark itself needs.
ours() { cargo tree --quiet -p mcp-sansio-bench -e normal --prefix none --features "$1" | sed 's/ .*//' | sort -u | grep -cvxE 'mcp-sansio-bench|serde_json|itoa|zmij|ryu'; }
theirs() { (cd benches/rmcp-client && cargo tree --quiet --locked -e normal --prefix none) | sed 's/ .*//' | sort -u | grep -cvx bench-rmcp-client; }

row() { echo "| $1 | $2 | $3 | $4 |"; }
each() { # TITLE FUNCTION ARGS...: a row with one figure for each program
  local title=$1 name figures=()
  shift
  for name in "${names[@]}"; do figures+=("$("$1" "$name" "${@:2}")"); done
  row "$title" "${figures[@]}"
}

rounds >"$scratch/rounds"
base=$(median bench-rmcp-client 3)
ratio() { awk -v rate="$(median "$1" 3)" -v base="$base" 'BEGIN { printf "%.2f", rate / base }'; }

echo "$(rustc --version), $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg); 5 × $calls calls, medians"
echo
row "" "blocking client" "smol client" "rmcp 3.9's client"
echo "|---|---:|---:|---:|"
each "calls per second" median 3
each "as a multiple of rmcp's" ratio
if command -v valgrind >/dev/null; then each "instructions per call" per_call; fi
each "allocations per call" median 4
each "start to first answer, µs" median 2
each "binary, stripped" size
row "crates in the normal tree" "$(ours client)" "$(ours client-smol)" "$(theirs)"
