#!/usr/bin/env bash
# A stdio server, a client that starts it as its child, and `inspect`, on Windows: built here, and run in Wine.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=x86_64-pc-windows-gnu
wine=$(command -v wine64 wine /usr/lib/wine/wine64 | head -1) || true
if [ -z "$wine" ] || ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
  "$here/../apt.sh" wine64 gcc-mingw-w64-x86-64 || true
  wine=$(command -v wine64 wine /usr/lib/wine/wine64 | head -1) || true
fi
if [ -z "$wine" ] || ! rustup target add "$target" >/dev/null 2>&1; then
  echo "windows: left out: no Wine, or no $target (apt-get install wine64 gcc-mingw-w64-x86-64)" >&2
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The versions are those of the workspace.
cp "$here/../../Cargo.lock" "$here/"
cargo build -q --manifest-path "$here/Cargo.toml" --target "$target"
cargo build -q --manifest-path "$here/../../Cargo.toml" -p mcp-sansio-inspect --target "$target"
built=${CARGO_TARGET_DIR:-$here/target}/$target/debug
cp "$built/client.exe" "$built/derived.exe" "${CARGO_TARGET_DIR:-$here/../../target}/$target/debug/inspect.exe" "$work"
x86_64-w64-mingw32-gcc -shared "$here/prng.c" -ladvapi32 -o "$work/bcryptprimitives.dll"
export WINEPREFIX=$work/wine WINEDEBUG=-all
cd "$work"

# check WHAT EXPECTED COMMAND...: its output is that, whatever its exit code.
check() {
  local output
  output=$(timeout 120 "${@:3}" 2>&1 | tr -d '\r' | grep -v '^wine: ') || true
  grep -Fqx -- "$2" <<<"$output" || { printf 'windows: %s: no line %s in\n%s\n' "$1" "$2" "$output" >&2; exit 1; }
  echo "windows: $1: ok"
}

# Wine makes its folder first, with words about it.
timeout 120 "$wine" client.exe >/dev/null 2>&1 || true
check "a client calls a tool of its child" "add: 3" "$wine" client.exe derived.exe
check "a program that is not there" 'Error: Start { program: "nothing.exe", error: Error { kind: NotFound, message: "program not found" } }' "$wine" client.exe nothing.exe
printf '%s\r\n' '{"jsonrpc":"2.0","id":1,"method":"ping"}' '{"jsonrpc":"2.0","id":2,"method":"tools/nothing"}' >lines
check "a server answers lines that end as on Windows" '{"jsonrpc":"2.0","id":1,"result":{}}' bash -c '"$0" derived.exe <lines' "$wine"

check "inspect lists tools" "add" "$wine" inspect.exe tools -- derived.exe
check "inspect calls a tool" "3" "$wine" inspect.exe call add a=1 b=2 -- derived.exe
check "inspect says what it cannot reach" "inspect: inspect reaches a URL on Unix systems only; give the command of a server, after --" \
  "$wine" inspect.exe tools http://localhost/mcp
# Into the file of a host, under its folder for Windows, and from there.
mkdir -p "$WINEPREFIX/drive_c/users/$(id -un)/.cursor"
timeout 120 "$wine" inspect.exe install calc cursor --write -- derived.exe >/dev/null 2>&1
check "inspect starts what a host has" "hello" "$wine" inspect.exe --from cursor calc call echo text=hello
