#!/usr/bin/env bash
# Three processes of the conformance server behind nginx (docs/nginx.conf), round robin. Changes of one reach the clients of
# all over Redis (adapters/fleet).
#
# 1. The official suite's run for 2026-07-28, without an excuse: what scales out is the stateless revision.
# 2. tests/scale/changes.py: each listener at each process hears each change once, also after Redis and processes were
#    killed and started anew.
#
# Needs nginx and Redis 7, which it installs where it can (Debian: nginx-light redis-server). Some two minutes.
#
# usage: tests/scale/fleet.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v nginx >/dev/null || ! command -v redis-server >/dev/null; then
  apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light redis-server >/dev/null
fi
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p mcp-sansio-conformance
dir=$(mktemp -d)
processes=()
end() {
  local process
  # One that has ended already cannot be ended.
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  wait
  rm -rf "$dir"
}
trap end EXIT

read -r port a b c redis < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(5)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))')
redis-server --bind 127.0.0.1 --port "$redis" --save "" --appendonly no >"$dir/redis.log" &
processes+=($!)
key=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
for one in "$a" "$b" "$c"; do
  "$target/release/conformance-server" --port "$one" --key "$key" --fleet "redis://127.0.0.1:$redis/" 2>"$dir/$one.log" &
  processes+=($!)
done
sed -e "s|@DIR@|$dir|; s|@PORT@|$port|; s|@A@|$a|; s|@B@|$b|; s|@C@|$c|" docs/nginx.conf >"$dir/nginx.conf"
nginx -p "$dir" -c "$dir/nginx.conf" -e "$dir/error.log" &
processes+=($!)
for _ in $(seq 100); do
  grep -q Joined "$dir/$a.log" && grep -q Joined "$dir/$b.log" && grep -q Joined "$dir/$c.log" &&
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  sleep 0.1
done
status=0
timeout 300 tests/conformance/run.sh server --url "http://127.0.0.1:$port/mcp" --run server-alpha-2026-07-28 || status=1
if [ -s "$dir/error.log" ]; then
  echo "nginx says:" && tail -5 "$dir/error.log"
fi
# Every process has had its share.
for process in "${processes[@]:1:3}"; do
  echo "process $process: $(awk '{ printf "%.0f ms of processor time", $1 / 1e6 }' "/proc/$process/schedstat")"
done
timeout 120 python3 tests/scale/changes.py "$target/release/conformance-server" || status=1
[ $status = 0 ] && echo "fleet: passed" || echo "fleet: FAILED"
exit $status
