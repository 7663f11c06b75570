#!/usr/bin/env bash
# Builds a firmware and runs it in QEMU.
#
#   run.sh uart            build and run as a stdio server
#   run.sh embassy         the same, on embassy
#   run.sh interrupts      the same, with plain interrupts
#   run.sh template        the service of the templates for boards, with their session and loop
#   run.sh ethernet PORT   build and run; http://127.0.0.1:PORT/mcp is the board's
#   run.sh build uart      build only, and print the path of the image
#   run.sh build ethernet
#
# Builds are quiet unless they fail; that, QEMU's warnings and what the firmware
# says go to standard error.
#
# `uart`, `embassy`, `interrupts`, `template`: what comes on standard input goes to UART0, what UART0 sends comes out on
# standard output, and nothing else does. It ends with status 0 when standard input
# ends, after all answers; with 1 when the firmware fails (panic, fault); at once on
# SIGTERM. Only while it waits for
# somebody to read its output QEMU hears no SIGTERM until the reader reads or goes
# away; SIGKILL works at any time, and leaves nothing behind.
#
# `ethernet`: the board is on a network of its own, on which QEMU gives it an
# address by DHCP and forwards PORT of this machine (127.0.0.1 only) to its port 80.
# It serves until it is ended by a signal; standard input and output are not used.
#
#   FIRMWARE_TARGET=target    thumbv7m-none-eabi; or thumbv6m-none-eabi, on the same board; or
#                             riscv32imc-unknown-none-elf, on QEMU's virt (not `embassy` and `interrupts`)
#   FIRMWARE_ELF=path         run this image, which is for that target, and build nothing
#   FIRMWARE_FEATURES=report  cargo features to build with
#   FIRMWARE_LEAN=1           smaller code for ARM (bm_lean in tests/bare_metal/toolchain.sh says how), for which the source
#                             of `core` is fetched if it must; fails where that cannot be. 0: as everybody builds. Unset:
#                             lean where that source is (rustup component add rust-src), which takes 20 seconds once
#   FIRMWARE_QEMU=arguments   more arguments of QEMU, such as `-icount shift=5`, a packet capture or a monitor
#   CARGO_TARGET_DIR, BM_TOOLCHAIN: as for cargo and tests/bare_metal/toolchain.sh
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
run=1
if [ "${1:-}" = build ]; then
    run=
    shift
fi
name=${1:-}
port=${2:-}
usage() {
    echo "usage: run.sh uart|embassy|interrupts|template | run.sh ethernet PORT | run.sh build uart|embassy|interrupts|template|ethernet" >&2
    exit 2
}
case $name in
uart | embassy | interrupts | template) ;;
ethernet) [ -z "$run" ] || [[ $port =~ ^[0-9]+$ ]] || usage ;;
*) usage ;;
esac

. "$here/../../tests/bare_metal/toolchain.sh"

target=${FIRMWARE_TARGET:-thumbv7m-none-eabi}
elf=${FIRMWARE_ELF:-}
if [ -z "$elf" ]; then
    BM_LEAN=${FIRMWARE_LEAN:-try} bm_select "$target"
    # Its own directory for each toolchain, or each would undo the other's work.
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}/$BM_BUILD
    "${BM_CARGO[@]}" build --quiet --locked --release "${BM_FLAGS[@]}" \
        --manifest-path "$here/Cargo.toml" --package "$name" \
        ${FIRMWARE_FEATURES:+--features "$FIRMWARE_FEATURES"} </dev/null >&2
    elf=$CARGO_TARGET_DIR/$BM_TARGET/release/$name
fi
if [ -z "$run" ]; then
    printf '%s\n' "$elf"
    exit
fi
bm_qemu "$target"
case $target in
# Without what an RV32IMC has not, so that nothing can use it.
riscv32*) machine=(-machine virt -cpu rv32,a=off,f=off,d=off,mmu=off -m 8M -bios none) ;;
*) machine=(-machine lm3s6965evb) ;;
esac
machine+=(-nodefaults -display none -monitor none -semihosting-config "enable=on,target=native")

if [ "$name" = ethernet ]; then
    net=user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:$port-:80
    case $target in
    riscv32*) net=(-netdev "$net" -global virtio-mmio.force-legacy=false
        -device virtio-net-device,netdev=net0,bus=virtio-mmio-bus.0) ;;
    *) net=(-nic "$net") ;;
    esac
    exec "$BM_QEMU" "${machine[@]}" -serial none "${net[@]}" \
        ${FIRMWARE_QEMU:-} -kernel "$elf" </dev/null >&2
fi

# QEMU has no way to tell a machine that its input is closed, and runs on. So the
# relay says it in the stream: four EOTs (`board::END_OF_INPUT`), on which the
# firmware finishes what it has and ends QEMU through semihosting.
#
# `exec`, so that QEMU *is* the process the client started: signals reach it, and
# there is nobody to outlive it but the relay, which ends with the client's pipe.
# -nodefaults: no monitor, no second UART; nothing but UART0 on standard output.
exec "$BM_QEMU" "${machine[@]}" -chardev stdio,id=uart0 -serial chardev:uart0 \
    ${FIRMWARE_QEMU:-} -kernel "$elf" < <(cat 2>/dev/null && printf '\004\004\004\004' 2>/dev/null)
