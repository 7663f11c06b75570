#!/usr/bin/env bash
# Builds the library for hosts and boards, one archive each: adapters/c/archives.sh DIRECTORY. A target that is not to be had here is
# left out with a word.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# = 1 ] || { sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
mkdir -p "$1"
version=$(sed -n '/^\[workspace.package\]/,/^version/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu thumbv6m-none-eabi thumbv7m-none-eabi thumbv7em-none-eabihf riscv32imc-unknown-none-elf; do
    # Bare metal has a script of its own for that.
    case $target in *-none-*) ;; *) rustup target add "$target" >/dev/null 2>&1 || true ;; esac
    library=$("$here/build.sh" "$target" 2>/dev/null) || { echo "archives: left out: $target" >&2; continue; }
    name=mcp-c-$version-$target
    rm -rf "${1:?}/$name"
    mkdir -p "$1/$name/include"
    cp "$here/include/mcp.h" "$here/include/mcp.hpp" "$1/$name/include/"
    cp "$library" "$here/README.md" "$here/../../LICENSE-MIT" "$here/../../LICENSE-APACHE" "$1/$name/"
    tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -czf "$1/$name.tar.gz" "$name"
    rm -rf "${1:?}/$name"
    echo "$1/$name.tar.gz $(stat -c %s "$1/$name.tar.gz")"
done
