#!/usr/bin/env bash
# Hostile and well-behaved clients beside each other, then rounds of broken connections, against both HTTP servers; then
# rounds of both HTTP clients against a server that breaks off, and of both clients of child processes (a tenth of the rounds):
#   tests/soak/run.sh SECONDS [ROUNDS]     SECONDS for each server, such as 600; ROUNDS for each, 10000 unless given; 0 leaves them out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:?how many seconds for each server}
rounds=${2:-10000}
cargo build --release -p mcp-sansio -p mcp-sansio-soak --example calc --example sysmon --bin mcp-sansio-soak
bin=${CARGO_TARGET_DIR:-target}/release
failed=0
plans=()
[ "$seconds" = 0 ] || plans+=("--seconds $seconds")
[ "$rounds" = 0 ] || plans+=("--rounds $rounds")
for plan in "${plans[@]}"; do
  for server in "calc --http " "sysmon --http 127.0.0.1:"; do
    name=${server%% *}
    echo "soak: $name $plan"
    # The last argument is the address, to which the soak appends a port; of calc it is empty.
    # shellcheck disable=SC2086
    "$bin/mcp-sansio-soak" $plan "$bin/examples/$name" --http "${server##* }" || failed=1
  done
done
[ "$rounds" != 0 ] || exit $failed
echo "soak: clients"
"$bin/mcp-sansio-soak" --clients "$rounds" || failed=1
echo "soak: clients of child processes"
"$bin/mcp-sansio-soak" --children "$rounds" || failed=1
exit $failed
