#!/usr/bin/env bash
# The footprint table of docs/footprint.md: flash, static RAM, highest stack and instructions of small images, each with one
# more thing in it (examples/firmware/footprint), and of whole programs.
#
#   tests/bare_metal/footprint.sh           prints the table
#   tests/bare_metal/footprint.sh --check   fails where the page's is off by more than the tolerance
#   tests/bare_metal/footprint.sh --write   puts it into the page, and its figures where other pages quote them
#   tests/bare_metal/footprint.sh --check-few   checks the images that have a budget and the base of the others, in a tenth of
#                                           the time, for the gate
#
# A column says how large some of them are as run.sh builds them where it can (bm_lean in toolchain.sh). Where
# it cannot, that column stays empty, --check says that it was not looked at, and --write refuses.
#
# To add a row: a program in examples/firmware/footprint/src/bin and a line in ROWS of tests/bare_metal/footprint.py.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/tests/bare_metal/toolchain.sh"
exec </dev/null

bm_select thumbv7m-none-eabi
kind=$BM_KIND
bm_qemu
bm_qemu riscv32imc-unknown-none-elf
firmware=$root/examples/firmware
target_directory=${CARGO_TARGET_DIR:-$firmware/target}
directory=$target_directory/footprint-$kind
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
# Those that need a feature are built apart: it would be linked into the others.
windowed=(windows large)
asking=(asks)
all=(everything)
# The crate of authorization, each with what it needs of it.
authorized=(client_dpop=auth client_es256=es256 http_tokens=tokens http_es256=tokens,es256)
tasked=(tasks)
eventful=(events)
extended=(skills apps)
# No row: run.sh checks that it does not panic.
unlisted=dynamic
# The smallest server, for one target alone.
smallest=tiny
apart=$(IFS='|'; echo "${windowed[*]}|${asking[*]}|${all[*]}|${tasked[*]}|${eventful[*]}|${extended[*]}|${authorized[*]%=*}|$unlisted|$smallest")
plain=($(cd "$firmware/footprint/src/bin" && ls -- *.rs | sed 's/\.rs$//' | grep -vxE "$apart"))

build() { # PACKAGE ARGUMENTS...
    local package=$1
    shift
    CARGO_TARGET_DIR=$directory "${BM_CARGO[@]}" build --quiet --locked --release "${BM_FLAGS[@]}" \
        --manifest-path "$firmware/Cargo.toml" --package "$package" "$@" >&2
}

row() { # KEY NAME: an image that was built; kept, for the next build of the same program writes over it
    local kept=$directory/images/${1//\//-}
    mkdir -p "${kept%/*}"
    cp "$directory/$BM_TARGET/release/$2" "$kept"
    printf '%s\t%s\n' "$1" "$kept" >>"$rows"
}

small() { # FEATURE PREFIX SUFFIX: the small images, each under PREFIX, its name, SUFFIX
    local name
    build footprint --features "$1" "${plain[@]/#/--bin=}"
    build footprint --features "$1,windows" "${windowed[@]/#/--bin=}"
    build footprint --features "$1,ask" "${asking[@]/#/--bin=}"
    build footprint --features "$1,tasks" "${tasked[@]/#/--bin=}"
    # The same program twice.
    build footprint --features "$1,push" --bin events
    row "$2events_push$3" events
    build footprint --features "$1,events" "${eventful[@]/#/--bin=}"
    build footprint --features "$1,skills,apps" "${extended[@]/#/--bin=}"
    build footprint --features "$1,ask,windows" "${all[@]/#/--bin=}"
    for name in "${plain[@]}" "${windowed[@]}" "${asking[@]}" "${tasked[@]}" "${eventful[@]}" "${extended[@]}" "${all[@]}"; do
        row "$2$name$3" "$name"
    done
    for name in "${authorized[@]}"; do
        build footprint --features "$1,${name#*=}" --bin "${name%=*}"
        row "$2${name%=*}$3" "${name%=*}"
    done
}

program() { # KEY PACKAGE ARGUMENTS...: a whole program
    local key=$1
    shift
    build "$@"
    row "$key" "$1"
}

check() {
    python3 "$root/tests/bare_metal/footprint.py" "$rows" "$@"
}

programs() {
    program "$BM_TARGET/uart-tools" uart --no-default-features
    program "$BM_TARGET/uart" uart
    program "$BM_TARGET/ethernet" ethernet
}

# The smallest server, and servers without the texts of errors.
smallest() {
    build footprint --bin tiny
    row "$BM_TARGET/tiny" tiny
    build footprint --features terse --bin tiny --bin tools_raw
    row "$BM_TARGET/tiny_terse" tiny
    row "$BM_TARGET/tools_raw_terse" tools_raw
}

if [ "${1:-}" = --check-few ]; then
    few=(core tools_raw http client)
    build footprint "${few[@]/#/--bin=}"
    for name in "${few[@]}"; do row "$BM_TARGET/$name" "$name"; done
    programs
    smallest
    check "$@"
    exit
fi

for target in thumbv7m-none-eabi thumbv6m-none-eabi riscv32imc-unknown-none-elf; do
    BM_TOOLCHAIN=$kind bm_select "$target"
    small "" "$target/" ""
    programs
done
# The boards whose drivers are for one processor.
BM_TOOLCHAIN=$kind bm_select thumbv7m-none-eabi
program "$BM_TARGET/interrupts" interrupts
program "$BM_TARGET/embassy" embassy
smallest

# The same for QEMU, with a word at the end. `ethernet` needs none: it says it to whoever asks.
BM_TOOLCHAIN=$kind bm_select thumbv7m-none-eabi
small report "" /report
program uart-tools/report uart --no-default-features --features report
program uart/report uart --features report

# The lean build, of those that no other row is compared with.
if BM_LEAN=1 BM_TOOLCHAIN=$kind bm_select thumbv7m-none-eabi; then
    directory=$target_directory/footprint-$BM_BUILD
    few=(core tools_raw client)
    build footprint "${few[@]/#/--bin=}"
    for name in "${few[@]}"; do row "$name/lean" "$name"; done
    program uart-tools/lean uart --no-default-features
    program uart/lean uart
    program ethernet/lean ethernet
else
    printf 'footprint: the lean build is not measured\n' >&2
fi

module=$("$root/examples/wasm/run.sh" build)
printf 'wasm\t%s\n' "$module" >>"$rows"
check "$@"
