#!/usr/bin/env bash
# Mutation testing: see src/main.rs for what it does and its options, and RESULTS.md for what it has found.
set -euo pipefail
cd "$(dirname "$0")"
exec cargo run --quiet -- "$@"
