#!/usr/bin/env bash
# Instructions per message, by callgrind: figures that a busy machine does not change.
# Each is (a run of 3N messages - a run of N) / 2N, so that starting up cancels out.
#
# usage: benches/counts.sh            prints what benches/counts.txt records
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --profile fast -p mcp-sansio-bench --features http \
  --bin driver --bin calc-stdio --bin floor --bin calc --bin floor-http --bin http --bin endpoint --bin engine
# One at a time: together, each would have the features of all.
cargo build --quiet --profile fast -p mcp-sansio-bench --features client --bin client
cargo build --quiet --profile fast -p mcp-sansio-bench --features client-smol --bin client-smol
cargo build --quiet --config adapters/bridge/build.toml --profile fast -p mcp-sansio-bridge --bin mcp-bridge
fast=$target/fast
lines=$(mktemp -d)
trap 'rm -rf "$lines"' EXIT

count() { # INPUT COMMAND...: instructions of one run
  local input=$1
  shift
  timeout 120 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" <"$input" 2>&1 >/dev/null |
    sed -n 's/.*Collected : //p'
}

each() { # NAME N ONCE THRICE
  local name=$1 n=$2 once=$3 thrice=$4
  echo "$name $(((thrice - once) / (2 * n)))"
}

process() { # PROGRAM KIND N
  local kind=$2 n=$3
  [ -f "$lines/$kind" ] || {
    "$fast/driver" lines "$kind" "$n" >"$lines/$kind"
    "$fast/driver" lines "$kind" $((3 * n)) >"$lines/$kind.3"
  }
  each "$1/$kind" "$n" "$(count "$lines/$kind" "$fast/$1")" "$(count "$lines/$kind.3" "$fast/$1")"
}

engine() { # CASE N
  each "engine/$1" "$2" "$(count /dev/null "$fast/engine" "$1" "$2")" "$(count /dev/null "$fast/engine" "$1" $((3 * $2)))"
}

http() { # PROGRAM NAME KIND N [heads]: the server's part of requests over one connection; with `heads` each head is another one
  local how=${5:-requests}
  count_http() {
    "$fast/http" "$how" "$1" "$2" "valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file=$lines/log $3"
    sed -n 's/.*Collected : //p' "$lines/log"
  }
  each "$2/http-$3${5:+-$5}" "$4" "$(count_http "$3" "$4" "$fast/$1")" "$(count_http "$3" $((3 * $4)) "$fast/$1")"
}

endpoint() { # SESSIONS N: `initialize` where there are so many sessions
  each "endpoint/initialize$1" "$2" "$(count /dev/null "$fast/endpoint" "$1" "$2")" "$(count /dev/null "$fast/endpoint" "$1" $((3 * $2)))"
}

client() { # PROGRAM NAME REVISION KIND N: the client's part of calls over the pipes to a child process, without the server's
  count_client() {
    timeout 120 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$fast/$1" ${2:+"$2"} "$3" "$fast/calc-stdio" 2>&1 >/dev/null |
      sed -n 's/.*Collected : //p'
  }
  each "$2/$4" "$5" "$(count_client "$1" "$3" "$5")" "$(count_client "$1" "$3" $((3 * $5)))"
}

bridge() { # ERA KIND N: the bridge's part of a host's calls of 2025-11-25, in front of a child process that is a server of ERA
  count_bridge() {
    timeout 120 "$fast/client" "$3" valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$lines/log" \
      "$fast/mcp-bridge" --era "$1" -- "$fast/calc-stdio" >/dev/null
    sed -n 's/.*Collected : //p' "$lines/log"
  }
  each "bridge/$2" "$3" "$(count_bridge "$@")" "$(count_bridge "$1" "$2" $((3 * $3)))"
}

echo "# Instructions per message, by benches/counts.sh. Checked by benches/check-counts.sh."
echo "toolchain $(rustc --version)"
for server in calc floor; do
  process $server ping 1000
  process $server echo32 1000
  process $server modern32 1000
  process $server plain64k 40
  process $server escaped64k 40
done
http calc calc modern32 1000
http calc calc echo32 1000
http floor-http floor modern32 1000
http floor-http floor echo32 1000
http calc calc modern32 1000 heads
http calc calc echo32 1000 heads
client client client "" echo32 500
client client client 2026-07-28 modern32 500
client client-smol client-smol "" echo32 500
client client-smol client-smol 2026-07-28 modern32 500
bridge legacy echo32 200
bridge modern modern32 200
endpoint 100 1000
endpoint 10000 1000
engine scan 1000
engine envelope 1000
engine echo32 1000
engine modern32 1000
engine list20 500
engine plain64k 40
engine escaped64k 40
