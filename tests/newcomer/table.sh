#!/usr/bin/env bash
# Prints the table of the programs: lines, crates, seconds of the processor for a release build, size of the program.
#   tests/newcomer/table.sh [PROGRAM]...     (default: all; some minutes each)
#   tests/newcomer/table.sh --lines          lines and crates of all, without a build
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

counts() {
    local crates
    crates=$(cargo tree --locked --offline -p "$1" -e normal --prefix none | sed 's/ .*//' | sort -u | wc -l)
    # shellcheck disable=SC2046
    printf '| `%s` | %d (%d) | %d |' "$1" "$(lines $(own "$1"))" "$(lines $(own "$1") $(shared "$1"))" "$crates"
}

row() {
    local program=$1 target seconds size
    target=$(mktemp -d "${TMPDIR:-/tmp}/newcomer.XXXXXX")
    TIMEFORMAT='%U %S'
    # As in a shell of a user: no settings of the caller for profiles, flags or directories.
    seconds=$({ time env -u CARGO_INCREMENTAL -u RUSTFLAGS CARGO_TARGET_DIR="$target" \
        nice -n 19 cargo build --quiet --release --locked --offline -j 1 -p "$program" 2>"$target.log"; } 2>&1) ||
        { cat "$target.log"; exit 1; }
    size=$(stat -c %s "$target/release/$program")
    counts "$program"
    printf ' %.0f | %.2f |\n' \
        "$(awk '{ print $1 + $2 }' <<<"$seconds")" "$(awk "BEGIN { print $size / 1048576 }")"
    rm -rf "$target" "$target.log"
}

all() { for each in */src/main.rs; do dirname "$(dirname "$each")"; done; }

cargo fetch --quiet --locked
if [[ ${1-} == --lines ]]; then
    printf '| program | lines | crates |\n|---|---:|---:|\n'
    for program in $(all); do counts "$program" && echo; done
    printf '| tests of the notes | %d | |\n' "$(lines service/tests/*.rs)"
    exit
fi
# shellcheck disable=SC2046
[[ $# -gt 0 ]] || set -- $(all)
printf '| program | lines | crates | CPU seconds | MiB |\n|---|---:|---:|---:|---:|\n'
for program; do row "$program"; done
