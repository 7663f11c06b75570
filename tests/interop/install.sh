#!/usr/bin/env bash
# Installs the pinned SDKs and servers into folders that git ignores. What is there
# already, made from the same lock file, is left alone.
#   install.sh           what run.sh needs
#   install.sh servers   what reverse.sh needs, too
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# The lanes of the gate may ask at the same time: one waits for the other.
exec 9<.
flock 9

python="${PYTHON:-python3}"

# True when the stamp $1 was written for the files named after it.
fresh() {
    local stamp="$1"; shift
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(cat "$@" | sha256sum)" ]
}

packages=(mcp-1.30 mcp-2.3)
[ "${1:-}" = servers ] && packages+=(fastmcp-4)
for package in "${packages[@]}"; do
    venv=".venv-$package"
    lock="requirements-$package.txt"
    if ! fresh "$venv/.stamp" "$lock"; then
        echo "interop: installing $lock into $venv"
        rm -rf "$venv"
        "$python" -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$lock"
        "$venv/bin/pip" check --disable-pip-version-check >/dev/null
        cat "$lock" | sha256sum > "$venv/.stamp"
    fi
done

if ! fresh node_modules/.stamp package.json package-lock.json; then
    echo "interop: installing package-lock.json into node_modules"
    major="$(node --version | sed 's/^v\([0-9]*\).*/\1/')"
    if [ "$major" -lt 20 ]; then
        echo "interop: the npm packages need Node 20 or newer, found $(node --version)" >&2
        exit 2
    fi
    npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
    cat package.json package-lock.json | sha256sum > node_modules/.stamp
fi
