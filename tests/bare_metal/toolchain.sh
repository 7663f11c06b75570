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
#                          BM_BUILD   BM_KIND, with -lean behind it where the build is: a name for its
#                                     directory, for what one leaves there another would undo
#   bm_qemu [TARGET]     makes sure of the QEMU that runs TARGET's images; sets BM_QEMU to its name
#   Both return non-zero, with a reason on standard error, when there is none.
#   Nothing is ever written to standard output, and standard input is not read.
# Run:  tests/bare_metal/toolchain.sh [TARGET]  does both and prints the choice.
#
# In order: a rustc in PATH that has the target; `rustup target add`; Debian's
# rustc-web, which has no bare-metal target but the source of `core`, to be built
# along (-Zbuild-std, which its stable cargo allows under RUSTC_BOOTSTRAP).
#
# BM_TOOLCHAIN=rustup|debian   take that one or fail
# BM_LEAN=1                    smaller code for ARM, see bm_lean: fail where it cannot be had.
# BM_LEAN=try                  the same where it needs nothing that is not there, and quietly not elsewhere
# BM_RUSTUP_TIMEOUT=60         seconds to try rustup for

bm_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

bm_say() { printf 'bare-metal: %s\n' "$*" >&2; }

# Whether the rustc in PATH has TARGET's libraries.
bm_rustc_has() {
    local libs
    libs=$(rustc --print target-libdir --target "$1" 2>/dev/null </dev/null) || return 1
    compgen -G "$libs/libcore-*.rlib" >/dev/null
}

bm_for_a_while() { # COMMAND...
    local limit=()
    # macOS has no timeout(1).
    command -v timeout >/dev/null && limit=(timeout "${BM_RUSTUP_TIMEOUT:-60}")
    ${limit[@]+"${limit[@]}"} "$@"
}

bm_rustup_add() {
    command -v rustup >/dev/null || return 1
    bm_say "rustup target add $1"
    bm_for_a_while rustup target add "$1" </dev/null >&2 && bm_rustc_has "$1"
}

# Whether RUSTC has the source of `core` with it.
bm_has_core() {
    local root
    root=$("$1" --print sysroot 2>/dev/null </dev/null) && [ -e "$root/lib/rustlib/src/rust/library/core/Cargo.toml" ]
}

bm_rustup_source() {
    [ "$BM_KIND" = rustup ] && command -v rustup >/dev/null || return 1
    bm_say "rustup component add rust-src"
    bm_for_a_while rustup component add rust-src </dev/null >&2
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
    bm_debian_ready || { "$bm_root/tests/apt.sh" rustc-web cargo-web rust-web-src lld && bm_debian_ready; } || return 1
    /usr/bin/rustc --print target-list </dev/null | grep -qx -- "$1"
}

# TARGET as this rustc has it, for how that is written differs from version to version, with what makes code small:
#   frame-pointer      every function of an ARM keeps one, for who walks the stack without knowing the program. No flag
#                      of rustc's takes it away, it is the target's: hence a target of our own.
#   promote-constant   constants lie beside the function that reads them, not behind an address that lies there.
#   machine-licm       would move what makes a constant out of a loop, and has no register to keep it in.
#   icf                functions with the same code are one.
bm_lean_spec() { # RUSTC FILE
    local description cpu=cortex-m3
    case $BM_TARGET in thumbv6m*) cpu=cortex-m0 ;; esac
    description=$(RUSTC_BOOTSTRAP=1 "$1" -Zunstable-options --print target-spec-json --target "$BM_TARGET" </dev/null) || return 1
    description=$(sed -e '/"frame-pointer"/d' -e '1a\
  "cpu": "'$cpu'",\
  "frame-pointer": "may-omit",\
  "llvm-args": [\
    "-arm-promote-constant", "-arm-promote-constant-max-size=256", "-arm-promote-constant-max-total=4096",\
    "-disable-machine-licm"\
  ],\
  "pre-link-args": { "gnu-lld": ["--icf=all"] },' <<<"$description")
    mkdir -p "${2%/*}"
    # Left as it is where it says the same, and never there in half: others may build by it now.
    [ "$(cat "$2" 2>/dev/null)" = "$description" ] || { printf '%s\n' "$description" >"$2.$$" && mv "$2.$$" "$2"; }
    # Whether it is understood, LLVM's arguments too.
    RUSTC_BOOTSTRAP=1 "$1" -Zunstable-options --print cfg --target "$2" >/dev/null 2>&1 </dev/null
}

# Turns what was selected into the lean build. It has the source of `core` built along, for there is none built for a
# target of ours, by unstable flags of a stable cargo.
bm_lean() {
    local rustc=rustc cargo=cargo spec=${CARGO_TARGET_DIR:-$bm_root/target}/lean-$BM_KIND/$BM_TARGET.json
    [ "$BM_KIND" = debian ] && rustc=/usr/bin/rustc cargo=/usr/bin/cargo
    case $BM_TARGET in thumb*) ;; *)
        bm_say "no lean build for $BM_TARGET: it has no frame pointers to leave out"
        return 1
        ;;
    esac
    if ! bm_has_core "$rustc" && ! { [ "$BM_LEAN" = 1 ] && bm_rustup_source && bm_has_core "$rustc"; }; then
        bm_say "no lean build: no source of core; with rustup: rustup component add rust-src"
        return 1
    fi
    bm_lean_spec "$rustc" "$spec" || {
        bm_say "no lean build: $rustc does not take a target of ours"
        return 1
    }
    BM_BUILD=$BM_KIND-lean
    # Cargo calls the target by the file's name: the directory of what is built is the same.
    BM_FLAGS=(-Zbuild-std=core --target "$spec")
    # The cargo of today wants to be told that a file is meant; earlier ones do not know the flag.
    case $(RUSTC_BOOTSTRAP=1 "$cargo" -Z help 2>/dev/null </dev/null) in
    *json-target-spec*) BM_FLAGS+=(-Zjson-target-spec) ;;
    esac
    [ "$BM_KIND" = debian ] || BM_CARGO=(env RUSTC_BOOTSTRAP=1 cargo)
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
    BM_BUILD=$BM_KIND
    case ${BM_LEAN:-0} in
    0) ;;
    1) bm_lean ;;
    *) bm_lean 2>/dev/null || : ;;
    esac
}

bm_qemu() {
    local package=qemu-system-arm
    BM_QEMU=qemu-system-arm
    case ${1:-} in riscv32*) BM_QEMU=qemu-system-riscv32 package=qemu-system-misc ;; esac
    command -v "$BM_QEMU" >/dev/null && return
    "$bm_root/tests/apt.sh" "$package" && command -v "$BM_QEMU" >/dev/null && return
    bm_say "no $BM_QEMU"
    return 1
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -eu
    bm_select "$@"
    bm_qemu "$@"
    printf 'build: %s\ncargo: %s\nflags: %s\n' "$BM_BUILD" "${BM_CARGO[*]}" "${BM_FLAGS[*]}"
    case $BM_KIND in debian) /usr/bin/rustc --version ;; *) rustc --version ;; esac
    "$BM_QEMU" --version | head -1
fi
