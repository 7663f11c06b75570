#!/usr/bin/env bash
# Three processes of the example behind nginx (docs/nginx.conf), with a Redis of their own, on free ports of 127.0.0.1. Prints the URL,
# and what the processes say of their fleet, until Ctrl-C; or runs a command with the URL in $URL, and ends with it. What ends
# meanwhile is started anew a second later, as a supervisor does: kill what you like.
#
# usage: examples/fleet/run.sh [COMMAND ARGUMENTS..]
set -euo pipefail
for program in nginx redis-server python3 cargo; do
  command -v $program >/dev/null || { echo "needs $program (Debian: nginx-light redis-server python3)" >&2; exit 2; }
done
root=$(cd "$(dirname "$0")/../.." && pwd)
cargo build --quiet --manifest-path "$root/Cargo.toml" --workspace --bin mcp-sansio-fleet-example --example calc
target=${CARGO_TARGET_DIR:-$root/target}
dir=$(mktemp -d)
chmod 711 "$dir" # workers of an nginx that root starts are of another user
(umask 077 && head -c 32 /dev/urandom >"$dir/key")
touch "$dir/log"
ports=$(python3 -c '
import socket
sockets = [socket.socket() for _ in range(5)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))')
read -r port redis a b c <<<"$ports"
sed -e "s|@DIR@|$dir|; s|@PORT@|$port|; s|@A@|$a|; s|@B@|$b|; s|@C@|$c|" "$root/docs/nginx.conf" >"$dir/nginx.conf"

declare -A process # their ids, by name; that of a server is its port
declare -A number=(["$a"]=1 ["$b"]=2 ["$c"]=3)
start() {
  case $1 in
    redis) redis-server --bind 127.0.0.1 --port "$redis" --save "" --appendonly no --dir "$dir" >>"$dir/redis.log" & ;;
    nginx) nginx -p "$dir" -c "$dir/nginx.conf" -e "$dir/error.log" & ;;
    *) "$target/debug/mcp-sansio-fleet-example" "${number[$1]}" "$1" "$dir/key" "$dir/notes" "redis://127.0.0.1:$redis/" 2>>"$dir/log" & ;;
  esac
  process[$1]=$!
}
end() {
  kill "${process[@]}" 2>/dev/null || true
  wait
  rm -rf "$dir"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
joined() { [ "$(grep -o Joined "$dir/log" | wc -l)" = 3 ]; } # three processes write there: their words may share a line
await() { # a command, until it succeeds
  for _ in $(seq 100); do "$@" && return; sleep 0.1; done
  echo "not ready after 10 s:" >&2
  cat "$dir"/*log >&2
  exit 1
}
start redis
await listens "$redis"
for name in "$a" "$b" "$c" nginx; do start "$name"; done
await joined
await listens "$port"
export URL="http://127.0.0.1:$port/mcp" PROCESSES="${process[$a]} ${process[$b]} ${process[$c]}"
if [ $# -gt 0 ]; then
  "$@" <&0 &
else
  echo "$URL: servers at ports $a $b $c (processes $PROCESSES), Redis at $redis (${process[redis]}). Ctrl-C ends all."
  tail -n +1 -f "$dir/log" &
fi
process[command]=$!
while kill -0 "${process[command]}" 2>/dev/null; do
  { wait -n || true; } 2>/dev/null
  for name in redis "$a" "$b" "$c" nginx; do
    kill -0 "${process[$name]}" 2>/dev/null && continue
    sleep 1
    start "$name"
    [ $# -gt 0 ] || echo "$name has ended, and is process ${process[$name]} now"
  done
done
wait "${process[command]}"
