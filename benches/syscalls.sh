#!/usr/bin/env bash
# System calls of both HTTP servers for one `tools/call` over a kept connection, by strace: of a client that sends its next
# request 5 ms after an answer, and of one that does not wait, also with texts up to 1 MiB both ways. Each is (a run of 300 - a
# run of 100) / 200, so that starting up cancels out.
#
# usage: benches/syscalls.sh
set -euo pipefail
cd "$(dirname "$0")/.."
command -v strace >/dev/null || tests/apt.sh strace
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --profile fast -p mcp-sansio-bench --features http --bin http --bin calc --bin floor-http
cargo build --quiet --profile fast -p mcp-sansio-bench --features smol-http --bin calc-smol
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

calls() { # PROGRAM KIND N PAUSE: names of the calls and their numbers
  # The server is the child, and strace its grandchild: SIGTERM ends the server, and then strace writes the rest.
  timeout 60 "$target/fast/http" requests "$2" "$3" "strace -D -f -qq -o $scratch/log $target/fast/$1" "$4"
  sleep 0.5
  # A call that another thread interrupts has two lines.
  sed -E 's/^[0-9]+ +//; /^<\.\.\. /d; /^(---|\+\+\+)/d; s/\(.*//' "$scratch/log" | sort | uniq -c
}

echo "| server | call | pause | system calls of a request |"
echo "|---|---|---|---|"
for server in floor-http calc calc-smol; do
  for load in echo32:5000 echo32:0 plain4k:0 plain64k:0 plain1m:0; do
    kind=${load%:*} pause=${load#*:}
    calls $server "$kind" 100 "$pause" >"$scratch/once"
    calls $server "$kind" 300 "$pause" >"$scratch/thrice"
    awk -v row="| $server | $kind | $((pause / 1000)) ms |" '
      FNR == NR { once[$2] = $1; next }
      { each = ($1 - once[$2]) / 200; if (each >= 0.05) { calls = calls sprintf(", %s %.1f", $2, each); sum += each } }
      END { printf "%s %.1f: %s |\n", row, sum, substr(calls, 3) }
    ' "$scratch/once" "$scratch/thrice"
  done
done
