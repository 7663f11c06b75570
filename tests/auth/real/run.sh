#!/usr/bin/env bash
# Authorization with programs of others: see README.md. It needs Node 20 or newer, npm and curl.
#   run.sh [inspect] [sdk]   these parts; without arguments both
# INSPECT, GUARDED, AUTH_CLIENT, BRIDGE and CALC name the programs; without them cargo builds all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ ! -f node_modules/.stamp ] || [ "$(cat node_modules/.stamp)" != "$(cat package.json package-lock.json | sha256sum)" ]; then
    npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
    cat package.json package-lock.json | sha256sum > node_modules/.stamp
fi
if [ -z "${INSPECT:-}" ] || [ -z "${GUARDED:-}" ] || [ -z "${AUTH_CLIENT:-}" ] || [ -z "${BRIDGE:-}" ] ||
    [ -z "${CALC:-}" ]; then
    # With the features of the whole workspace, as `cargo test --workspace` has compiled them.
    (cd ../../.. && cargo build --quiet --workspace --features mcp-sansio-bridge/tls --example inspect --example guarded \
        --example calc --bin auth_client --bin mcp-bridge)
    built="${CARGO_TARGET_DIR:-../../../target}/debug"
    INSPECT="${INSPECT:-$built/examples/inspect}" GUARDED="${GUARDED:-$built/examples/guarded}"
    AUTH_CLIENT="${AUTH_CLIENT:-$built/auth_client}" BRIDGE="${BRIDGE:-$built/mcp-bridge}" CALC="${CALC:-$built/examples/calc}"
fi
export INSPECT GUARDED AUTH_CLIENT BRIDGE CALC

[ $# -gt 0 ] || set -- inspect sdk
for part in "$@"; do
    case "$part" in
        inspect) timeout -k 5 600 ./inspect.sh ;;
        # What the provider says about its configuration is of no use here.
        sdk) timeout -k 5 600 node --test-reporter=spec sdk.test.mjs 2> >(grep -v '^.*oidc-provider' >&2) ;;
        *) echo "no such part: $part" >&2; exit 2 ;;
    esac
done
