#!/usr/bin/env bash
# Installs packages of Debian, where that can work: tests/apt.sh PACKAGE.... Fails where it cannot: no Debian, or not root.
# The lanes of the gate may ask at the same time: one waits for the other.
set -euo pipefail
command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || { echo "not root on a Debian: apt-get install $*" >&2; exit 1; }
exec 9<"${BASH_SOURCE[0]}" </dev/null >&2
flock 9
export DEBIAN_FRONTEND=noninteractive
install=(apt-get -qq install -y --no-install-recommends "$@")
# Perhaps only the lists are missing or old.
"${install[@]}" 9>&- || { apt-get -qq update 9>&-; "${install[@]}" 9>&-; }
