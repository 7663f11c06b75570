#!/usr/bin/env bash
# Checks that the published packages compile with the oldest versions of their dependencies that their Cargo.toml allows.
# In a copy without tests: what only they need is not what a user gets. Needs a nightly cargo, to select the versions.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo +nightly --version >/dev/null 2>&1 || { echo "left out: no nightly toolchain" >&2; exit 0; }

copy=target/minimal/copy
rm -rf "$copy" && mkdir -p "$copy"
packages=$(cargo metadata --no-deps --format-version 1 | "${PYTHON:-python3}" -c '
import json, os, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] is None:
        print(package["name"], os.path.relpath(os.path.dirname(package["manifest_path"])))')
names=() folders=()
while read -r name folder; do names+=(-p "$name") folders+=("$folder"); done <<<"$packages"

# The root package has the others in it: only its own sources.
for folder in "${folders[@]}"; do
  mkdir -p "$copy/$folder"
  if [ "$folder" = . ]; then cp -r Cargo.toml src README.md docs "$copy"; else cp -rL "$folder/." "$copy/$folder"; fi
done
"${PYTHON:-python3}" - "$copy" "${folders[@]}" <<'PY'
import re, sys
copy, folders = sys.argv[1], sys.argv[2:]
for folder in folders:
    path = f"{copy}/{folder}/Cargo.toml"
    text = open(path).read()
    # Targets that are not in the copy, and what only tests need.
    text = re.sub(r"(?ms)^\[dev-dependencies\]\n.*?(?=^\[|\Z)", "", text)
    text = re.sub(r"(?ms)^\[\[(example|test|bench)\]\]\n.*?(?=^\[|\Z)", "", text)
    if folder == ".":
        members = ", ".join(f'"{member}"' for member in folders)
        text = re.sub(r"(?ms)^members = \[.*?^\]", f"members = [{members}]", text)
        text = re.sub(r"(?m)^exclude = .*$", "", text)
    open(path, "w").write(text)
PY
cd "$copy"
cargo +nightly update -q -Z direct-minimal-versions
cargo check -q --locked --lib --bins --all-features --target-dir ../build "${names[@]}"
echo "minimal versions: ${#folders[@]} packages compile"
