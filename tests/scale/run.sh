#!/usr/bin/env bash
# Measures both HTTP servers at three sizes each, up to 10,000 connections with sessions and event streams, and lists of any
# size; checks that everything arrives once, and that memory and sockets are given back. Some three minutes; the machine
# should have nothing else to do. The server has one processor, its clients another.
#
# usage: tests/scale/run.sh [--page] [STREAMS]     --page writes docs/scale.svg, and the tables into docs/scale.md;
#                                                  STREAMS instead of 10,000
set -euo pipefail
cd "$(dirname "$0")/../.."
page=no
if [ "${1:-}" = --page ]; then page=yes && shift; fi
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p mcp-sansio-scale
values=$(mktemp)
trap 'rm -f "$values"' EXIT
timeout 900 "$target/release/scale" "$target/release/scale-server" "${1:-10000}" >"$values"
if [ $page = yes ]; then
  "${PYTHON:-python3}" tests/scale/page.py "$values" "$(rustc --version | cut -d' ' -f1,2), $(nproc) processors"
else
  "${PYTHON:-python3}" tests/scale/page.py "$values"
fi
