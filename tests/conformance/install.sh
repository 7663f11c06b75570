#!/usr/bin/env bash
# Installs Node 22 and both pinned suites into folders that git ignores, each
# from its lock file. What is there already, made from the same files, is left alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

for folder in node alpha latest; do
    files=("$folder/package.json" "$folder/package-lock.json")
    stamp="$folder/node_modules/.stamp"
    if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$(cat "${files[@]}" | sha256sum)" ]; then
        echo "conformance: installing $folder/package-lock.json" >&2
        (cd "$folder" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2)
        cat "${files[@]}" | sha256sum > "$stamp"
    fi
done
