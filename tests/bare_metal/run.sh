#!/usr/bin/env bash
# Everything that is checked on bare metal:
#   the core compiles for devices (what is made of it is an image, below), with and without its features for them;
#   the firmware builds, how big it is, and that it neither panics nor allocates;
#   the firmware runs in QEMU.
# Installs what it needs where it can (see toolchain.sh).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/tests/bare_metal/toolchain.sh"
exec </dev/null

bm_select thumbv7m-none-eabi
kind=$BM_KIND
bm_qemu
if [ "$kind" = debian ]; then /usr/bin/rustc --version; else rustc --version; fi
qemu-system-arm --version | head -1

# The core. What the first toolchain cannot do of the further targets is left out.
for target in thumbv7m-none-eabi thumbv6m-none-eabi riscv32imc-unknown-none-elf; do
    if ! BM_TOOLCHAIN=$kind bm_select "$target"; then
        echo "left out: the core for $target"
        continue
    fi
    for features in client server client,server,serde; do
        CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/bare-metal-$kind \
            "${BM_CARGO[@]}" check --quiet --locked "${BM_FLAGS[@]}" --manifest-path "$root/Cargo.toml" \
            --package mcp-sansio --lib --no-default-features ${features:+--features "$features"}
        echo "ok: the core for $target, features: ${features:-none}"
    done
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/bare-metal-$kind \
        "${BM_CARGO[@]}" check --quiet --locked "${BM_FLAGS[@]}" --manifest-path "$root/Cargo.toml" \
        --package mcp-sansio-http --lib --no-default-features
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/bare-metal-$kind \
        "${BM_CARGO[@]}" check --quiet --locked "${BM_FLAGS[@]}" --manifest-path "$root/Cargo.toml" \
        --package mcp-sansio-embedded --lib
    echo "ok: HTTP and embedded-io for $target"
done

silent() { # NAME TITLE: a program in which nothing can panic, and what it answers
    local elf
    elf=$("$root/examples/firmware/run.sh" build "$1")
    echo "$2:"
    python3 "$root/tests/bare_metal/panics.py" "$elf" "$root/tests/bare_metal/panics-allowed.txt"
    python3 "$root/tests/bare_metal/exchange.py" --brief "$root/examples/firmware/run.sh" "$1"
}

# The firmware, by the same command that runs it, as everybody builds.
export BM_TOOLCHAIN=$kind FIRMWARE_LEAN=0
elf=$("$root/examples/firmware/run.sh" build uart)
python3 "$root/tests/bare_metal/panics.py" "$elf" "$root/tests/bare_metal/panics-allowed.txt"
python3 "$root/tests/bare_metal/exchange.py" "$root/examples/firmware/run.sh" uart

# The same program in the other kinds of code: on the same board, and on one of RISC-V.
for target in thumbv6m-none-eabi riscv32imc-unknown-none-elf; do
    export FIRMWARE_TARGET=$target
    silent uart "uart for $target"
done
unset FIRMWARE_TARGET

# In the lean build, which is other code: nothing panics, and it does the same.
if (BM_LEAN=1 bm_select thumbv7m-none-eabi); then
    export FIRMWARE_LEAN=1
    silent uart "uart, lean"
    elf=$("$root/examples/firmware/run.sh" build ethernet)
    echo "ethernet, lean:"
    python3 "$root/tests/bare_metal/callers.py" "$elf" "$root/tests/bare_metal/panics-ethernet.txt"
    export FIRMWARE_LEAN=0
else
    echo "left out: the lean build"
fi

# The tools, session and loops of the templates for boards.
FIRMWARE_TARGET=riscv32imc-unknown-none-elf python3 "$root/tests/bare_metal/template.py" "$root/examples/firmware/run.sh"
FIRMWARE_FEATURES=embassy python3 "$root/tests/bare_metal/template.py" "$root/examples/firmware/run.sh"

# With plain interrupts, over embedded-io: nothing panics either.
silent interrupts "interrupts"

# Lists from the state of the program, without and with windows and questions: nothing panics.
(
    BM_TOOLCHAIN=$kind bm_select thumbv7m-none-eabi
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/examples/firmware/target}/footprint-$kind
    for features in "" windows windows,ask; do
        "${BM_CARGO[@]}" build --quiet --locked --release "${BM_FLAGS[@]}" --manifest-path "$root/examples/firmware/Cargo.toml" \
            --package footprint --features "report,$features" --bin dynamic
        echo "dynamic lists${features:+, with $features}:"
        python3 "$root/tests/bare_metal/panics.py" "$CARGO_TARGET_DIR/$BM_TARGET/release/dynamic" \
            "$root/tests/bare_metal/panics-allowed.txt"
    done
)

# On embassy, over embedded-io-async: who can panic, by name.
elf=$("$root/examples/firmware/run.sh" build embassy)
echo "embassy:"
python3 "$root/tests/bare_metal/callers.py" "$elf" "$root/tests/bare_metal/panics-embassy.txt"
python3 "$root/tests/bare_metal/exchange.py" --brief "$root/examples/firmware/run.sh" embassy

# Tokens without an allocator: the crate, and the programs of the footprint table that send and check them.
(
    BM_TOOLCHAIN=$kind bm_select thumbv7m-none-eabi
    for features in "" es256; do
        CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/bare-metal-$kind \
            "${BM_CARGO[@]}" check --quiet --locked "${BM_FLAGS[@]}" --manifest-path "$root/Cargo.toml" \
            --package mcp-sansio-auth --lib --no-default-features ${features:+--features "$features"}
        echo "ok: authorization for $BM_TARGET, features: ${features:-none}"
    done
    # The directory of footprint.sh, which builds the same.
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/examples/firmware/target}/footprint-$kind
    for program in "element client client_dpop auth" "es256 client client_es256 es256" \
        "element server http_tokens tokens" "es256 server http_es256 tokens,es256"; do
        read -r signatures role name features <<<"$program"
        "${BM_CARGO[@]}" build --quiet --locked --release "${BM_FLAGS[@]}" --manifest-path "$root/examples/firmware/Cargo.toml" \
            --package footprint --features "report,$features" --bin "$name"
        image=$CARGO_TARGET_DIR/$BM_TARGET/release/$name
        echo "$name:"
        python3 "$root/tests/bare_metal/callers.py" "$image" "$root/tests/bare_metal/panics-tokens.txt"
        python3 "$root/tests/bare_metal/tokens.py" "$signatures" "$role" "$image"
    done
)

# A serial port as a host has one.
python3 "$root/tests/firmware/serial.py"

# Over Ethernet: who can panic, by name, and no allocator. What it does is the step `firmware`.
for features in "" fixture; do
    ethernet=$(FIRMWARE_FEATURES=$features "$root/examples/firmware/run.sh" build ethernet)
    echo "ethernet${features:+, with the $features}:"
    python3 "$root/tests/bare_metal/callers.py" "$ethernet" "$root/tests/bare_metal/panics-ethernet.txt"
done

# How deep the stack got, in a build that says so.
python3 "$root/tests/bare_metal/exchange.py" --input |
    FIRMWARE_FEATURES=report "$root/examples/firmware/run.sh" uart 2>&1 >/dev/null | grep -E '^(stack|time):'
echo "bare metal: all good"
