#!/usr/bin/env bash
# The C library as C programs use it: the header in C and C++, wrong configurations, sessions of all revisions cut at each byte,
# over HTTP, a client, and a board in QEMU. Address and undefined-behaviour sanitizers look on, with each compiler that is here.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
header=adapters/c/include
warnings="-Wall -Wextra -Wpedantic -Werror"
# The board is at most this large, in bytes of flash: with one tool, and without a C library.
flash=30000

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || { echo "c: left out: no $compiler" >&2; continue; }
    for language in "c c99" "c c11" "c++ c++11" "c++ c++17"; do
        read -r name standard <<<"$language"
        echo '#include <mcp.h>' | "$compiler" -x "$name" -std="$standard" $warnings -I"$header" -fsyntax-only -
    done
    for standard in c++11 c++17; do
        "$compiler" -x c++ -std="$standard" $warnings -I"$header" -fsyntax-only examples/c/server.cpp tests/c/cpp.cpp
    done
    make -s -B -C examples/c CC="$compiler" BUILD="$work/$compiler" CFLAGS="-O1 -g -Werror -fsanitize=address,undefined -fno-sanitize-recover"
    "$compiler" -std=c99 -g $warnings -fsanitize=address,undefined -fno-sanitize-recover -I"$header" tests/c/config.c "$work/$compiler/libmcp.a" -o "$work/config"
    timeout 60 "$work/config" >"$work/config.log" || { cat "$work/config.log"; exit 1; }
    timeout 300 "$python" tests/c/session.py "$work/$compiler/server"
    timeout 120 "$python" tests/c/over_http.py "$work/$compiler/http_server"
    timeout 60 "$work/$compiler/client" "$work/$compiler/server" set_level '{"level":7}' | grep -q '"text":"done"'
    timeout 60 "$work/$compiler/client" "$work/$compiler/server" fade | grep -q '"text":"faded"'
    if timeout 60 "$work/$compiler/client" "$work/$compiler/server" none >/dev/null 2>&1; then echo "c: a tool that is not there was called" >&2; exit 1; fi
    "${compiler/%gcc/g}++" -std=c++11 -g $warnings -fsanitize=address,undefined -fno-sanitize-recover -I"$header" tests/c/cpp.cpp \
        "$work/$compiler/libmcp.a" -o "$work/cpp"
    timeout 60 "$work/cpp"
    echo "c: ok with $compiler"
done

# The repository's transcripts: the same bytes as of the core without C.
cargo build -q --locked -p mcp-sansio-c --features http,ask --example twin
gcc -std=c99 -O1 -g $warnings -fsanitize=address,undefined -fno-sanitize-recover -I"$header" tests/c/twin.c "$work/gcc/libmcp.a" -o "$work/twin"
timeout 300 "$python" tests/c/transcripts.py "$work/twin" "${CARGO_TARGET_DIR:-target}/debug/examples/twin"

# The official suites, over HTTP: all that is no extension.
if command -v npm >/dev/null; then
    gcc -std=c99 -O1 -g $warnings -fsanitize=address,undefined -fno-sanitize-recover -I"$header" tests/c/conformance.c "$work/gcc/libmcp.a" -o "$work/conformance"
    runs=(server-alpha-2025-03-26 server-alpha-2025-06-18 server-alpha-2025-11-25 server-alpha-2026-07-28 server-latest-all)
    CONFORMANCE_SERVER=$work/conformance tests/conformance/run.sh server "${runs[@]/#/--run=}"
else
    echo "c: left out: no npm for the official suites" >&2
fi

# As installed: found by pkg-config and by CMake, in C and in C++.
adapters/c/install.sh "$work/prefix" >/dev/null
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
    # shellcheck disable=SC2046 # words
    g++ -std=c++11 -O1 $warnings $(pkg-config --cflags mcp) examples/c/server.cpp $(pkg-config --libs mcp) -o "$work/server-cpp"
    timeout 60 "$work/gcc/client" "$work/server-cpp" set_level '{"level":7}' | grep -q '"text":"done"'
    echo "c: ok in C++, found by pkg-config"
else
    echo "c: left out: no pkg-config" >&2
fi
if command -v cmake >/dev/null; then
    cmake -S examples/c -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
    cmake --build "$work/cmake" >/dev/null
    timeout 60 "$work/cmake/client" "$work/cmake/server_cpp" status | grep -q '"level":0'
    echo "c: ok with CMake"
else
    echo "c: left out: no cmake" >&2
fi

# Nothing of the library panics: its own object, which is the whole of it, calls no panic. With HTTP, only code of core that moves and
# cuts slices can, under conditions that its callers check, as in tests/bare_metal/panics-ethernet.txt.
(cd "$work" && ar x gcc/libmcp.a 2>/dev/null || ar x clang/libmcp.a)
callers=$(objdump -dr "$work"/mcp-*.o | awk '/^[0-9a-f]+ <.*>:$/ { name = $2 } /R_.*(panicking|_fail)/ { print name }' |
    grep -vE 'copy_within|4core3str4iter|core\.\.str\.\.iter|slice_index_fail' | sort -u || true)
if [ -n "$callers" ]; then echo "c: the library can panic: $callers" >&2; exit 1; fi

command -v arm-none-eabi-gcc >/dev/null || tests/apt.sh gcc-arm-none-eabi || true
if ! command -v arm-none-eabi-gcc >/dev/null; then
    echo "c: left out: no arm-none-eabi-gcc (apt install gcc-arm-none-eabi)" >&2
    exit 0
fi
# The C of the examples for Zephyr and ESP-IDF, for their processors, without these two.
for cpu in cortex-m0 cortex-m3 "cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"; do
    arm-none-eabi-gcc -mcpu=$cpu -mthumb -Os -std=c11 -ffreestanding -ffunction-sections -fdata-sections -fno-common $warnings -I"$header" \
        -Itests/c/stubs -c examples/c/zephyr/src/main.c -o "$work/zephyr.o"
done
if command -v clang >/dev/null; then
    clang --target=riscv32 -march=rv32imc -mabi=ilp32 -Os -std=gnu17 -ffreestanding -ffunction-sections -fdata-sections $warnings -I"$header" \
        -Itests/c/stubs -c examples/c/esp-idf/main/main.c -o "$work/esp-idf.o"
fi
. tests/bare_metal/toolchain.sh
bm_qemu
library=$(adapters/c/build.sh thumbv7m-none-eabi)
arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Os -ffreestanding -nostdlib -std=c99 $warnings -I"$header" examples/c/board.c "$library" \
    -T examples/c/board.ld -Wl,--gc-sections -Wl,--no-warnings -lgcc -o "$work/board.elf" 2>"$work/link.log" ||
    arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -Os -ffreestanding -nostdlib -std=c99 $warnings -I"$header" examples/c/board.c "$library" \
        -T examples/c/board.ld -Wl,--gc-sections -lgcc -o "$work/board.elf"
if arm-none-eabi-nm "$work/board.elf" | grep -i panic; then echo "c: the board can panic" >&2; exit 1; fi
read -r text bss < <(arm-none-eabi-size -A "$work/board.elf" | awk '$1 == ".text" { text = $2 } $1 == ".bss" { bss = $2 } END { print text, bss }')
echo "c: board with one tool: $text bytes of flash, $bss of RAM with 768 of buffers, without the stack"
[ "$text" -le "$flash" ] || { echo "c: more than $flash bytes of flash" >&2; exit 1; }
timeout 60 "$python" tests/c/board.py "$BM_QEMU" "$work/board.elf"
echo "c: all passed"
