#!/usr/bin/env bash
# The firmware for the Raspberry Pi Pico, in an emulator of its chip: builds it, installs the emulator that
# pico/package-lock.json names, and is its USB host (pico/test.mjs).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
firmware="$here/../../examples/firmware/pico"

command -v rustup > /dev/null && rustup target add thumbv6m-none-eabi
(cd "$firmware" && cargo build --locked --release)
(cd "$here/pico" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2)
timeout 120 node "$here/pico/test.mjs" "$firmware/../target/pico/thumbv6m-none-eabi/release/pico"
