#!/usr/bin/env bash
# Makes the corpus of each target as small as it can be: of the committed inputs and of those in DIR/TARGET, as few as reach the same code.
#
#   fuzz/minimise.sh DIR [TARGET...]    # DIR: such as the corpus folder of fuzz/hours.py
#
# Inputs with a name that is no hash have found something, and stay. At most MOST inputs for each target, the shortest ones.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(realpath "$1")
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | tail -n +2)
most=${MOST:-1500}
programs=${PROGRAMS:-$(realpath ../target/fuzzed/bin)}
for target in "${targets[@]}"; do
  small=$(mktemp -d)
  mkdir -p "$folder/$target"
  # The committed ones come first: what is in both, stays. A run that ends too late is no finding here.
  nice -n "${NICE:-10}" "$programs/$target" -merge=1 -use_counters=0 -timeout=60 -max_len=4096 "$small" "corpus/$target" "$folder/$target" >"$small.log" 2>&1 ||
    { echo "$target: $(tail -1 "$small.log")" >&2; rm -rf "$small"; continue; }
  before=$(find "corpus/$target" -type f | wc -l)
  find "corpus/$target" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
  find "$small" -type f -printf '%s %p\n' | sort -n | sed -n "1,${most}p" | cut -d' ' -f2- | while read -r input; do
    cp "$input" "corpus/$target/$(sha1sum "$input" | cut -d' ' -f1)"
  done
  # One that is there under a name too is enough.
  for named in $(find "corpus/$target" -type f -not -regextype posix-extended -not -regex '.*/[0-9a-f]{40}'); do
    rm -f "corpus/$target/$(sha1sum "$named" | cut -d' ' -f1)"
  done
  echo "$target: $before inputs before, $(find "corpus/$target" -type f | wc -l) now, $(du -sb "corpus/$target" | cut -f1) bytes"
  rm -rf "$small" "$small.log"
done
