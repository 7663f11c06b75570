#!/bin/sh
# A serial port as a stdio server: what comes on standard input goes to DEVICE, what comes from it goes to standard output.
#
#   serial.sh DEVICE [BAUD]      say serial.sh /dev/ttyACM0, or /dev/cu.usbmodem101; BAUD is 115200 if not given
#
# It ends with status 0 when its input has ended and the device has been silent for a second; with 1 when the device goes
# away. Only stty and cat are needed; nothing else may use the port meanwhile.
set -u
device=${1:-}
baud=${2:-115200}
if [ ! -c "$device" ]; then
    echo "usage: serial.sh DEVICE [BAUD]; there is no device '$device'" >&2
    exit 2
fi

# Without `clocal` opening would wait for a modem. GNU's stty has -F for that, the BSDs' has -f.
stty -F "$device" clocal 2>/dev/null || stty -f "$device" clocal 2>/dev/null
exec 3<>"$device" || exit 1
# `min 0 time 10`: a read of which nothing comes in a second ends, and with it the `cat` below.
stty raw -echo clocal -crtscts "$baud" min 0 time 10 <&3 || exit 1

# A newline first: what an earlier client has left half said on the line is then a line of its own.
# Kept as 4, for the standard input of what runs in the background is /dev/null.
exec 4<&0
{ echo && exec cat; } <&4 >&3 &
feeder=$!
trap 'kill "$feeder" 2>/dev/null' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

while cat <&3; do
    kill -0 "$feeder" 2>/dev/null || exit 0
    # The terminal of a device that has gone gives nothing at once, again and again.
    stty <&3 >/dev/null 2>&1 || break
done
echo "serial.sh: $device has gone" >&2
exit 1
