#!/usr/bin/env bash
# The footprint table of the README: flash, static RAM, highest stack and instructions of small images, each with one
# more thing in it (examples/firmware/footprint), and of whole programs.
#
#   .ci/footprint.sh           prints the table
#   .ci/footprint.sh --check   fails where the README's is off by more than the tolerance
#   .ci/footprint.sh --write   puts it into the README
#
# To add a row: a program in examples/firmware/footprint/src/bin and a line in ROWS of .ci/lib/footprint.py.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/.ci/bare-metal-toolchain.sh"
exec </dev/null

bm_select thumbv7m-none-eabi
kind=$BM_KIND
bm_qemu
firmware=$root/examples/firmware
base=${CARGO_TARGET_DIR:-$firmware/target}
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
programs=$(cd "$firmware/footprint/src/bin" && ls -- *.rs | sed 's/\.rs$//')
asking="asks everything"

build() { # DIRECTORY FEATURES PACKAGE NAME...: builds programs of a package
    local directory=$1 features=$2 package=$3
    shift 3
    CARGO_TARGET_DIR=$directory "${BM_CARGO[@]}" build --quiet --locked --release "${BM_FLAGS[@]}" \
        --manifest-path "$firmware/Cargo.toml" --package "$package" --features "$features" "${@/#/--bin=}" >&2
}

list() { # KEY-PREFIX KEY-SUFFIX DIRECTORY NAME...
    local prefix=$1 suffix=$2 directory=$3 name
    shift 3
    for name; do printf '%s%s%s\t%s\n' "$prefix" "$name" "$suffix" "$directory/$BM_TARGET/release/$name" >>"$rows"; done
}

plain=$(for name in $programs; do [[ " $asking " == *" $name "* ]] || echo "$name"; done)
for target in thumbv7m-none-eabi thumbv6m-none-eabi riscv32imc-unknown-none-elf; do
    BM_TOOLCHAIN=$kind bm_select "$target" || { echo "left out: $target" >&2; continue; }
    directory=$base/footprint-$kind
    # What asks is built apart: the feature would be linked into the others.
    build "$directory" "" footprint $plain
    build "$directory" ask footprint $asking
    list "$target/" "" "$directory" $plain $asking
done

# The same for QEMU, with a word at the end.
BM_TOOLCHAIN=$kind bm_select thumbv7m-none-eabi
build "$base/footprint-report-$kind" report footprint $plain
build "$base/footprint-report-$kind" report,ask footprint $asking
list "" /report "$base/footprint-report-$kind" $plain $asking

# Whole programs.
program() { # NAME PACKAGE ARGUMENTS...
    local name=$1 package=$2 kept
    shift 2
    local what
    for what in "" report; do
        # Its stack cannot be seen from here: it talks by TCP.
        [ "$what$package" != reportethernet ] || continue
        CARGO_TARGET_DIR=$base/footprint-programs-$kind "${BM_CARGO[@]}" build --quiet --locked --release "${BM_FLAGS[@]}" \
            --manifest-path "$firmware/Cargo.toml" --package "$package" "$@" ${what:+--features "$what"} >&2
        # The next build of the same program writes over it.
        kept=$base/footprint-programs-$kind/$name${what:+-$what}
        cp "$base/footprint-programs-$kind/$BM_TARGET/release/$package" "$kept"
        if [ -z "$what" ]; then
            printf '%s/%s\t%s\n' "$BM_TARGET" "$name" "$kept" >>"$rows"
        else
            printf '%s/report\t%s\n' "$name" "$kept" >>"$rows"
        fi
    done
}
program uart-tools uart --no-default-features
program uart uart
[ ! -d "$firmware/ethernet" ] || program ethernet ethernet

if [ -x "$root/examples/wasm/run.sh" ] && module=$("$root/examples/wasm/run.sh" build); then
    printf 'wasm\t%s\n' "$module" >>"$rows"
fi
python3 "$root/.ci/lib/footprint.py" "$rows" "$@"
