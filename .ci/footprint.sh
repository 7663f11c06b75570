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
asking=(asks everything)
plain=($(cd "$firmware/footprint/src/bin" && ls -- *.rs | sed 's/\.rs$//' | grep -vxE "$(IFS='|'; echo "${asking[*]}")"))

build() { # DIRECTORY PACKAGE ARGUMENTS...
    local directory=$1 package=$2
    shift 2
    CARGO_TARGET_DIR=$directory "${BM_CARGO[@]}" build --quiet --locked --release "${BM_FLAGS[@]}" \
        --manifest-path "$firmware/Cargo.toml" --package "$package" "$@" >&2
}

row() { # KEY IMAGE
    printf '%s\t%s\n' "$1" "$2" >>"$rows"
}

small() { # DIRECTORY FEATURE PREFIX SUFFIX: the small images, each under PREFIX, its name, SUFFIX
    local name
    # What asks is built apart: the feature would be linked into the others.
    build "$1" footprint --features "$2" "${plain[@]/#/--bin=}"
    build "$1" footprint --features "$2,ask" "${asking[@]/#/--bin=}"
    for name in "${plain[@]}" "${asking[@]}"; do row "$3$name$4" "$1/$BM_TARGET/release/$name"; done
}

program() { # KEY PACKAGE ARGUMENTS...: a whole program
    local key=$1 directory=$base/footprint-programs-$kind
    shift
    build "$directory" "$@"
    # The next build of the same program writes over it.
    local kept=$directory/${key//\//-}
    cp "$directory/$BM_TARGET/release/$1" "$kept"
    row "$key" "$kept"
}

for target in thumbv7m-none-eabi thumbv6m-none-eabi riscv32imc-unknown-none-elf; do
    BM_TOOLCHAIN=$kind bm_select "$target"
    small "$base/footprint-$kind" "" "$target/" ""
    program "$target/uart-tools" uart --no-default-features
    program "$target/uart" uart
    program "$target/ethernet" ethernet
done

# The same for QEMU, with a word at the end. `ethernet` says it to whoever asks, as it is.
BM_TOOLCHAIN=$kind bm_select thumbv7m-none-eabi
small "$base/footprint-report-$kind" report "" /report
program uart-tools/report uart --no-default-features --features report
program uart/report uart --features report
row ethernet/asked "$base/footprint-programs-$kind/$BM_TARGET-ethernet"

module=$("$root/examples/wasm/run.sh" build)
row wasm "$module"
python3 "$root/.ci/lib/footprint.py" "$rows" "$@"
