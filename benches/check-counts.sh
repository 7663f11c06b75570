#!/usr/bin/env bash
# Instructions per message against what benches/counts.txt records: 5 % slack, 15 % if the toolchain is another one, and 5 %
# more for the smol client and the bridge.
# A lost vectorisation shows nowhere else. What the floor needs is recorded to compare with and not checked.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || tests/apt.sh valgrind
now=$(mktemp)
trap 'rm -f "$now"' EXIT
bash benches/counts.sh >"$now"
bytes=$(stat -c %s "${CARGO_TARGET_DIR:-target}/fast/mcp-bridge")
echo "mcp-bridge has $bytes bytes"
[ "$bytes" -le 1572864 ] || { echo "mcp-bridge is larger than docs/bridge.md says" >&2; exit 1; }
awk '
  /^#/ { next }
  $1 == "toolchain" { toolchain[FILENAME] = $0; next }
  FNR == NR { recorded[$1] = $2; next }
  { counted[$1] = $2; order[++n] = $1 }
  END {
    slack = 0.05
    if (toolchain[ARGV[1]] != toolchain[ARGV[2]]) {
      slack = 0.15
      print "recorded with another " toolchain[ARGV[1]] ", now " toolchain[ARGV[2]] ": 15 % slack"
    }
    for (i = 1; i <= n; i++) {
      name = order[i]
      if (counted[name] <= 0) { print "NONE   " name ": its program does not run here"; failed++; continue }
      if (!(name in recorded)) { print "NEW    " name ": " counted[name] ", not in benches/counts.txt"; failed++; continue }
      ratio = counted[name] / recorded[name]
      word = "ok"
      # The thread of async-io takes part, or not: 13,790 to 15,003 were counted for the same program.
      more = name ~ /^(client-smol|bridge)\// ? 0.05 : 0
      if (name ~ /^floor\//) word = "floor"
      else if (ratio > 1 + slack + more) { word = "HIGHER"; failed++ }
      else if (ratio < 1 - slack - more) { word = "LOWER"; lower++ }
      else passed++
      printf "%-7s %-20s %8d recorded, %8d now, %+.1f %%\n", word, name, recorded[name], counted[name], (ratio - 1) * 100
    }
    # The work of a request does not grow with the number of sessions.
    few = counted["endpoint/initialize100"]
    many = counted["endpoint/initialize10000"]
    if (many > 2 * few) { print "GROWS   initialize: " few " with 100 sessions, " many " with 10,000"; failed++ }
    else passed++
    if (lower) print "Much lower than recorded: keep it, with `benches/counts.sh > benches/counts.txt`."
    if (failed) print "Higher than recorded: find out why; if it is worth it, `benches/counts.sh > benches/counts.txt`."
    print passed + lower + 0 " passed, " failed + 0 " failed"
    exit failed > 0
  }
' benches/counts.txt "$now"
