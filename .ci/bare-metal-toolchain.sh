#!/usr/bin/env bash
# The one place that knows how Rust is built for bare metal here.
#
# Sourced:
#   bm_select [TARGET]   chooses a toolchain that builds for TARGET (default
#                        thumbv7m-none-eabi), installing what is missing; sets
#                          BM_TARGET  the target
#                          BM_KIND    rustup | debian
#                          BM_CARGO   array: the cargo command, environment and all
#                          BM_FLAGS   array: to follow `cargo build` (has --target)
#   bm_qemu [TARGET]     makes sure of the QEMU that runs TARGET's images; sets BM_QEMU to its name
#   Both return non-zero, with a reason on standard error, when there is none.
#   Nothing is ever written to standard output, and standard input is not read.
# Run:  .ci/bare-metal-toolchain.sh [TARGET]  does both and prints the choice.
#
# In order: a rustc in PATH that has the target; `rustup target add`; Debian's
# rustc-web, which has no bare-metal target but the source of `core`, to be built
# along (-Zbuild-std, which its stable cargo allows under RUSTC_BOOTSTRAP).
#
# BM_TOOLCHAIN=rustup|debian   take that one or fail
# BM_RUSTUP_TIMEOUT=60         seconds to try `rustup target add` for

bm_say() { printf 'bare-metal: %s\n' "$*" >&2; }

# Whether the rustc in PATH has TARGET's libraries.
bm_rustc_has() {
    local libs
    libs=$(rustc --print target-libdir --target "$1" 2>/dev/null </dev/null) || return 1
    compgen -G "$libs/libcore-*.rlib" >/dev/null
}

bm_rustup_add() {
    command -v rustup >/dev/null || return 1
    local limit=()
    # macOS has no timeout(1).
    command -v timeout >/dev/null && limit=(timeout "${BM_RUSTUP_TIMEOUT:-60}")
    bm_say "rustup target add $1"
    ${limit[@]+"${limit[@]}"} rustup target add "$1" </dev/null >&2 && bm_rustc_has "$1"
}

# apt-get install, where that can work.
bm_apt() {
    command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 1
    bm_say "apt-get install $*"
    if ! DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" </dev/null >&2; then
        # Perhaps only the lists are missing or old.
        apt-get -qq update </dev/null >&2 &&
            DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" </dev/null >&2
    fi
}

# Whether Debian's toolchain is there, whole, and can take this crate. Debian
# packages plain `rustc` too, which in bookworm is far too old.
bm_debian_ready() {
    local minor
    [ -x /usr/bin/rustc ] && [ -x /usr/bin/cargo ] && command -v ld.lld >/dev/null || return 1
    [ -e /usr/lib/rustlib/src/rust/library/core/Cargo.toml ] || return 1
    minor=$(/usr/bin/rustc --version </dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
    [ "${minor:-0}" -ge 88 ]
}

bm_debian() {
    bm_debian_ready || { bm_apt rustc-web cargo-web rust-web-src lld && bm_debian_ready; } || return 1
    /usr/bin/rustc --print target-list </dev/null | grep -qx -- "$1"
}

bm_select() {
    BM_TARGET=${1:-thumbv7m-none-eabi}
    local linker
    linker=CARGO_TARGET_$(printf %s "$BM_TARGET" | tr 'a-z.-' 'A-Z__')_LINKER
    if [ "${BM_TOOLCHAIN:-rustup}" = rustup ] && bm_rustc_has "$BM_TARGET"; then
        BM_KIND=rustup
    elif [ -z "${BM_TOOLCHAIN:-}" ] && bm_debian_ready && bm_debian "$BM_TARGET"; then
        # Installed here before, because rustup could not: do not wait for it again.
        BM_KIND=debian
    elif [ "${BM_TOOLCHAIN:-rustup}" = rustup ] && bm_rustup_add "$BM_TARGET"; then
        BM_KIND=rustup
    elif [ "${BM_TOOLCHAIN:-debian}" = debian ] && bm_debian "$BM_TARGET"; then
        BM_KIND=debian
    else
        bm_say "no Rust toolchain for $BM_TARGET; with rustup: rustup target add $BM_TARGET"
        return 1
    fi
    case $BM_KIND in
    rustup)
        BM_CARGO=(cargo)
        BM_FLAGS=(--target "$BM_TARGET")
        ;;
    debian)
        # Paths in full: PATH may well lead to rustup's first. lld by name: the
        # target asks for rust-lld, which Debian does not have.
        # WebAssembly has a linker of its own, of the same package.
        local lld=ld.lld
        case $BM_TARGET in wasm*) lld=wasm-ld ;; esac
        BM_CARGO=(env RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 "$linker=$lld" /usr/bin/cargo)
        BM_FLAGS=(-Zbuild-std=core --target "$BM_TARGET")
        ;;
    esac
}

bm_qemu() {
    local package=qemu-system-arm
    BM_QEMU=qemu-system-arm
    case ${1:-} in riscv32*) BM_QEMU=qemu-system-riscv32 package=qemu-system-misc ;; esac
    command -v "$BM_QEMU" >/dev/null && return
    bm_apt "$package" && command -v "$BM_QEMU" >/dev/null && return
    bm_say "no $BM_QEMU"
    return 1
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -eu
    bm_select "$@"
    bm_qemu "$@"
    printf 'kind:  %s\ncargo: %s\nflags: %s\n' "$BM_KIND" "${BM_CARGO[*]}" "${BM_FLAGS[*]}"
    case $BM_KIND in debian) /usr/bin/rustc --version ;; *) rustc --version ;; esac
    "$BM_QEMU" --version | head -1
fi
