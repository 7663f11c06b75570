#!/usr/bin/env bash
# Hostile and well-behaved clients beside each other, then rounds of broken connections, against both HTTP servers; then
# rounds of both HTTP clients against a server that breaks off, and of both clients of child processes (a tenth of the rounds):
#   tests/soak/run.sh SECONDS [ROUNDS]     SECONDS for each server, such as 600; ROUNDS for each, 10000 unless given; 0 leaves them out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:?how many seconds for each server}
rounds=${2:-10000}
build=(cargo build --workspace --example calc --example sysmon --bin mcp-sansio-soak)
# What is counted needs no optimised programs: these are those that `cargo test` has compiled. Where times are measured, our own packages
# are optimised, and those of others are as `cargo test` has them.
if [ "$seconds" = 0 ]; then
  "${build[@]}"
else
  CARGO_PROFILE_DEV_OPT_LEVEL=2 "${build[@]}" --config 'profile.dev.package."*".opt-level=0'
fi
bin=${CARGO_TARGET_DIR:-target}/debug
logs=$(mktemp -d)
# Each soak is a group of processes, with its servers.
set -m
trap 'for group in $(jobs -p); do kill -- "-$group" 2>/dev/null; done; rm -rf "$logs"' EXIT
failed=0
# Where each server listens, without its port.
declare -A address=([calc]="" [sysmon]="127.0.0.1:")
soak() { # SERVER PLAN..: the soak appends a port to the last argument
  "$bin/mcp-sansio-soak" "${@:2}" "$bin/examples/$1" --http "${address[$1]}"
}
if [ "$seconds" != 0 ]; then
  # When its times are measured, a server waits for what attackers have left to end, and does nothing: the next one begins.
  declare -A running
  for server in calc sysmon; do
    soak $server --seconds "$seconds" >"$logs/$server" 2>&1 &
    running[$server]=$!
    sleep $((seconds + 5))
  done
  for server in calc sysmon; do
    wait "${running[$server]}" || failed=1
    echo "soak: $server for $seconds s"
    cat "$logs/$server"
  done
fi
[ "$rounds" != 0 ] || exit $failed
for server in calc sysmon; do
  echo "soak: $server, $rounds rounds"
  soak $server --rounds "$rounds" || failed=1
done
echo "soak: clients"
"$bin/mcp-sansio-soak" --clients "$rounds" || failed=1
echo "soak: clients of child processes"
"$bin/mcp-sansio-soak" --children "$rounds" || failed=1
exit $failed
