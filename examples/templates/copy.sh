#!/usr/bin/env bash
# Copies a template out of the clone, and writes into the Cargo.toml of the copy where the crates of the clone are, since they are not
# published yet.
#   examples/templates/copy.sh NAME FOLDER     a FOLDER that is there already (copied by hand) only gets the places
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -ne 2 ] || [ ! -f "$here/$1/Cargo.toml" ]; then
  echo "usage: $0 NAME FOLDER, with one of these names:" $(cd "$here" && echo */) >&2
  exit 2
fi
if [ ! -e "$2" ]; then
  mkdir -p "$(dirname "$2")"
  # Boards share their tools by a link.
  cp -RL "$here/$1" "$2"
  rm -rf "${2:?}/target"
fi
clone=$(cd "$here/../.." && pwd)
manifest=$(<"$2/Cargo.toml")
printf '%s\n' "${manifest//'path = "../../..'/"path = \"$clone"}" >"$2/Cargo.toml"
