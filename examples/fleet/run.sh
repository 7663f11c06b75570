#!/usr/bin/env bash
# Three processes of the example behind nginx (docs/nginx.conf), with a Redis of their own, on free ports of 127.0.0.1. Prints the URL
# and waits for Ctrl-C; or runs a command with the URL in $URL, and ends with it. What it started, it ends.
#
# usage: examples/fleet/run.sh [COMMAND ARGUMENTS..]
set -euo pipefail
cd "$(dirname "$0")/../.."
for program in nginx redis-server; do
  command -v $program >/dev/null || { echo "needs $program (Debian: nginx-light redis-server)" >&2; exit 2; }
done
cargo build --quiet --release -p mcp-sansio-fleet-example
program=${CARGO_TARGET_DIR:-target}/release/mcp-sansio-fleet-example
dir=$(mktemp -d)
chmod 711 "$dir" # workers of an nginx that root starts are of another user
processes=()
end() {
  local process
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  wait
  rm -rf "$dir"
}
trap end EXIT
trap 'exit 0' INT TERM

read -r port a b c redis < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(5)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))')
head -c 32 /dev/urandom >"$dir/key"
redis-server --bind 127.0.0.1 --port "$redis" --save "" --appendonly no >"$dir/redis.log" &
processes+=($!)
for one in "$a" "$b" "$c"; do
  "$program" "$one" "$dir/key" "$dir/notes" "redis://127.0.0.1:$redis/" 2>"$dir/$one.log" &
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
export URL="http://127.0.0.1:$port/mcp"
if [ $# -gt 0 ]; then
  "$@"
else
  echo "$URL: processes ${processes[*]:1:3} at ports $a $b $c; kill one and see. Ctrl-C ends all."
  wait
fi
