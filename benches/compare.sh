#!/usr/bin/env bash
# Measures servers and clients of this library beside those of others, in turns and in one run: rmcp, sml_mcps, the SDKs for
# TypeScript and Python, and a floor without any MCP library (benches/src/bin/floor.rs, floor_http.rs). Every answer is checked.
# A library that cannot be built or installed here is left out, with a word. Some ten minutes once built; the machine should
# have nothing else to do. Rates are to be compared within one run only; instructions, allocations and sizes do not move.
#
# usage: benches/compare.sh [--page] [--short]     --page writes the tables into docs/benchmarks.md, and their figures into
#                                                  README.md; --short takes two minutes, to see that all of it runs
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
fast=$CARGO_TARGET_DIR/fast small=$CARGO_TARGET_DIR/small
interop=tests/interop
rounds=5 millis=500 calls=20000 page=no
for word in "$@"; do
  case $word in
    --page) page=yes ;;
    --short) rounds=1 millis=150 calls=2000 ;;
    *) sed -n '2,9p' "$0" >&2; exit 2 ;;
  esac
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
values=$scratch/values

has() { # NAME COMMAND...: makes a library ready, or leaves it out
  local name=$1
  shift
  if "$@" >"$scratch/log" 2>&1; then return 0; fi
  echo "$name: $(tail -n 1 "$scratch/log")" >>"$scratch/missing"
  echo "left out: $(tail -n 1 "$scratch/missing")" >&2
  return 1
}
ours() { cargo build --quiet --profile "$1" -p mcp-sansio-bench "${@:2}"; }
theirs() { # FOLDER PROFILE...
  (cd "benches/$1" && cargo build --quiet --locked --profile "$2" "${@:3}")
}

# One at a time: together, each would have the features of all.
ours fast --features client --bin client --bin floor-client
ours fast --features client-smol --bin client-smol --bin floor-client-smol
ours fast --features client-http --bin client-http
ours fast --features client-smol-http --bin client-smol-http
ours fast --bin calc-stdio --bin floor --bin driver
ours small --bin calc-stdio --bin floor
cp "$fast/calc-stdio" "$fast/floor" "$fast/driver" "$scratch"
ours fast --features smol-http --bin calc-smol
ours fast --features http --bin calc --bin floor-http --bin compare

stdio=("floor=$scratch/floor" "mcp-sansio=$scratch/calc-stdio")
http=("floor=$fast/floor-http" "mcp-sansio=$fast/calc" "mcp-sansio, smol=$fast/calc-smol")
clients=(floor-client client floor-client-smol client-smol) web_clients=(client-http client-smol-http)
programs=(floor calc-stdio)
# With `&&`: a function in a condition does not end at its first failure.
build_rmcp() {
  theirs rmcp-server fast --features http --bin bench-rmcp-http &&
    theirs rmcp-client fast --features http --bin bench-rmcp-http-client &&
    theirs rmcp-client fast --bin bench-rmcp-client &&
    theirs rmcp-server fast --bin bench-rmcp-server &&
    theirs rmcp-server small --bin bench-rmcp-server
}
install_interop() { node --version && PYTHON=${PYTHON:-python3} "$interop/install.sh"; }
if has rmcp build_rmcp; then
  stdio+=("rmcp=$fast/bench-rmcp-server") http+=("rmcp=$fast/bench-rmcp-http")
  clients+=(bench-rmcp-client) web_clients+=(bench-rmcp-http-client) programs+=(bench-rmcp-server)
fi
if has sml_mcps theirs sml-mcps fast; then
  stdio+=("sml_mcps=$fast/bench-sml-mcps") http+=("sml_mcps=$fast/bench-sml-mcps")
fi
if has "SDKs for TypeScript and Python" install_interop; then
  stdio+=("TypeScript=node $interop/servers/echo.mjs") http+=("TypeScript=node $interop/servers/echo.mjs")
  python=$interop/.venv-mcp-2.3/bin/python
  stdio+=("Python=$python $interop/servers/echo.py") http+=("Python=$python $interop/servers/echo.py")
fi

note() { printf '%s\t' "${@:1:$#-1}"; printf '%s\n' "${@: -1}"; } >>"$values"

# Servers over HTTP, and over stdio.
note machine "$(rustc --version | cut -d' ' -f1,2), $(nproc) processors; $rounds x $millis ms for a server, $rounds x $calls calls for a client"
timeout 600 "$fast/compare" "$rounds" "$millis" "${http[@]}" | sed 's/^/http\t/' >>"$values"
timeout 300 taskset -c 0 "$scratch/driver" load echo32/1 echo32/64 plain64k/1 "${stdio[@]}" |
  awk -F' *[|] *' 'NR > 2 { print "stdio\t" $2 "\t" $3 "\t" $4 "\t" $5 "\t" $6 "\t" $7 }' >>"$values"

# Clients, one call after the other: over the pipes to a child process, and over HTTP.
port=$("${PYTHON:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
taskset -c 0 "$fast/calc" http "$port" >/dev/null 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
for ((round = 0; round < rounds; round++)); do
  for name in "${clients[@]}"; do
    note client "$name" $(timeout 120 taskset -c 0 "$fast/$name" "$calls" "$scratch/calc-stdio")
  done
  for name in "${web_clients[@]}"; do
    note web-client "$name" $(timeout 120 taskset -c 0 "$fast/$name" "$calls" "http://127.0.0.1:$port/mcp")
  done
done

# What a busy machine does not change.
counted() { # COMMAND...: instructions, without those of child processes
  timeout 120 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}
size() { stat -c %s "$1"; }
crates() { sed 's/ .*//' | sort -u | grep -cvx 'bench-.*'; }
tree() { cargo tree --quiet -p "$@" -e normal --prefix none | crates; }
their_tree() { (cd "benches/$1" && cargo tree --quiet --locked -e normal --prefix none) | crates; }
for name in "${programs[@]}"; do
  note size "$name" "$(size "$small/$name")"
done
for name in "${clients[@]}"; do
  strip -o "$scratch/stripped" "$fast/$name" && note size "$name" "$(size "$scratch/stripped")"
done
note crates calc-stdio "$(tree mcp-sansio-blocking)"
note crates client "$(tree mcp-sansio-blocking --features client)"
note crates client-smol "$(tree mcp-sansio-smol --features client)"
if [ ${#programs[@]} -gt 2 ]; then
  note crates bench-rmcp-server "$(their_tree rmcp-server)"
  note crates bench-rmcp-client "$(their_tree rmcp-client)"
fi
if command -v valgrind >/dev/null; then
  for kind in echo32 modern32; do
    for times in 1 3; do "$scratch/driver" lines $kind $((times * 1000)) >"$scratch/lines.$times"; done
    for name in "${programs[@]}"; do
      one=$(counted "$([ -e "$scratch/$name" ] && echo "$scratch" || echo "$fast")/$name" <"$scratch/lines.1")
      three=$(counted "$([ -e "$scratch/$name" ] && echo "$scratch" || echo "$fast")/$name" <"$scratch/lines.3")
      note "instructions-$kind" "$name" $(((three - one) / 2000))
    done
  done
  for name in "${clients[@]}"; do
    one=$(counted "$fast/$name" 500 "$scratch/calc-stdio") three=$(counted "$fast/$name" 1500 "$scratch/calc-stdio")
    note instructions-echo32 "$name" $(((three - one) / 1000))
  done
fi
timeout 120 taskset -c 0 "$scratch/driver" memory "${stdio[@]}" |
  awk -F' *[|] *' 'NR > 2 { print "memory\t" $2 "\t" $3 "\t" $4 "\t" $5 }' >>"$values"

if [ -e "$scratch/missing" ]; then sed 's/^/missing\t/' "$scratch/missing" >>"$values"; fi
if [ $page = yes ]; then "${PYTHON:-python3}" benches/page.py "$values" --page; else "${PYTHON:-python3}" benches/page.py "$values"; fi
