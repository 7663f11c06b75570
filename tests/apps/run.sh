#!/usr/bin/env bash
# Our panels in a host of others: see README.md. It needs Node 20 or newer, npm and Chromium, which it installs where it can.
#   run.sh [sysmon] [ethernet]       these servers; without arguments both
#   run.sh --pictures [sysmon] ...   also writes docs/apps-*.png, which takes a minute more
# SYSMON and FIRMWARE_ELF name the programs; without them they are built. CHROMIUM names the browser.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$PWD/../..

if [ ! -f node_modules/.stamp ] || [ "$(cat node_modules/.stamp)" != "$(cat package.json package-lock.json | sha256sum)" ]; then
    npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
    cat package.json package-lock.json | sha256sum > node_modules/.stamp
fi
export CHROMIUM="${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}"
if [ -z "$CHROMIUM" ]; then
    "$root/tests/apt.sh" chromium fonts-inter
    CHROMIUM=$(command -v chromium)
fi

pictures=
if [ "${1:-}" = --pictures ]; then pictures=--pictures; shift; fi
[ $# -gt 0 ] || set -- sysmon ethernet
for server in "$@"; do
    case "$server" in
    sysmon)
        if [ -z "${SYSMON:-}" ]; then
            (cd "$root" && cargo build --quiet --workspace --example sysmon)
            SYSMON="${CARGO_TARGET_DIR:-$root/target}/debug/examples/sysmon"
        fi
        export SYSMON ;;
    ethernet)
        [ -n "${FIRMWARE_ELF:-}" ] || FIRMWARE_ELF=$("$root/examples/firmware/run.sh" build ethernet)
        export FIRMWARE_ELF ;;
    *) echo "no such server: $server" >&2; exit 2 ;;
    esac
done
exec timeout -k 5 300 node run.mjs $pictures "$@"
