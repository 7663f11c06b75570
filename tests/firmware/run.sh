#!/usr/bin/env bash
# The firmware, from outside: what it is, what it passes, what it survives. See README.md.
#   tests/firmware/run.sh suites     the official server suites against the board, all runs, the strict gate
#   tests/firmware/run.sh robust     what a board meets in the world
#   tests/firmware/run.sh day        a day of its time in six minutes, its clock's wrap in it
#   tests/firmware/run.sh interop    clients of other SDKs: the UART over stdio, the board over HTTP
#   tests/firmware/run.sh serial     the UART behind a pseudo-terminal, through the bridge for serial ports
#   tests/firmware/run.sh pico       the Pico's firmware over USB, in an emulator of its chip
#   tests/firmware/run.sh gate       suites (--short), robust, two hours of its time, pico: what CI runs
#   tests/firmware/run.sh all
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$here/../.."
python="${PYTHON:-python3}"

case "${1:-}" in
suites) "$python" "$here/suites.py" ;;
robust) "$python" "$here/robust.py" ;;
serial) "$python" "$here/serial.py" ;;
pico) "$here/pico.sh" ;;
day) "$python" "$here/day.py" --seconds "${2:-370}" ;;
interop)
    "$root/tests/interop/run.sh" --server firmware
    "$root/tests/interop/run.sh" --server board
    "$python" "$here/manual.py"
    ;;
gate)
    "$python" "$here/suites.py" --short
    "$here/run.sh" robust
    "$here/run.sh" day 30
    "$here/run.sh" pico
    ;;
all)
    "$here/run.sh" suites
    "$here/run.sh" robust
    "$here/run.sh" day
    "$here/run.sh" pico
    "$here/run.sh" serial
    "$here/run.sh" interop
    ;;
*)
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
