#!/usr/bin/env bash
# Prints the table of the programs: lines, crates, seconds of the processor for a release build, size of the program.
#   tests/newcomer/table.sh [PROGRAM]...     (default: all; some minutes each)
#
# Lines: without blanks and comments; in brackets with the modules that the program shares with others. Crates: of the normal tree.
# Seconds: user and system, of `cargo build --release -j 1` into an empty target directory, sources fetched before. Size: of that
# build, with the profile of Cargo.toml (opt-level 3, LTO, one codegen unit, stripped).
set -euo pipefail
cd "$(dirname "$0")"

lines() { cat "$@" | grep -vcE '^[[:space:]]*(//|$)'; }

# The sources of a program: its own, and those that it shares. The service counts as a part of program 1.
own() {
    case $1 in
    notes) echo service/src/*.rs notes/src/*.rs ;;
    *) echo "$1"/src/*.rs ;;
    esac
}
shared() {
    case $1 in
    notes | notes-rmcp) echo db/src/*.rs ;;
    notes-axum | notes-polling) echo db/src/*.rs service/src/*.rs ;;
    esac
}

row() {
    local program=$1 target seconds size crates
    target=$(mktemp -d "${TMPDIR:-/tmp}/newcomer.XXXXXX")
    TIMEFORMAT='%U %S'
    # As in a shell of a user: no settings of the caller for profiles, flags or directories.
    seconds=$({ time env -u CARGO_INCREMENTAL -u RUSTFLAGS CARGO_TARGET_DIR="$target" \
        nice -n 19 cargo build --quiet --release --locked --offline -j 1 -p "$program" 2>"$target.log"; } 2>&1) ||
        { cat "$target.log"; exit 1; }
    size=$(stat -c %s "$target/release/$program")
    crates=$(cargo tree --locked --offline -p "$program" -e normal --prefix none | sed 's/ .*//' | sort -u | wc -l)
    # shellcheck disable=SC2046
    printf '| `%s` | %d (%d) | %d | %.0f | %.2f |\n' "$program" "$(lines $(own "$program"))" \
        "$(lines $(own "$program") $(shared "$program"))" "$crates" \
        "$(awk '{ print $1 + $2 }' <<<"$seconds")" "$(awk "BEGIN { print $size / 1048576 }")"
    rm -rf "$target" "$target.log"
}

[[ $# -gt 0 ]] || set -- $(for each in */src/main.rs; do dirname "$(dirname "$each")"; done)
cargo fetch --quiet --locked
echo '| program | lines | crates | CPU seconds | MiB |'
echo '|---|---:|---:|---:|---:|'
for program; do row "$program"; done
printf '| tests of the notes | %d | | | |\n' "$(lines service/tests/*.rs)"
