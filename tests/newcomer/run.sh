#!/usr/bin/env bash
# Builds the programs of this workspace and drives each one: with `inspect`, with the client (program 3), with its tests.
#   tests/newcomer/run.sh      prints a line for each check; fails at the first that does not hold
#
# Needs `script` (util-linux) for a terminal on which inspect asks, and `curl`. Servers listen on 127.0.0.1, at ports of the system's choice.
set -euo pipefail
cd "$(dirname "$0")"
cargo build --quiet --locked
cargo test --quiet --locked -p notes-service
(cd ../.. && cargo build --quiet -p mcp-sansio-inspect)
bin=${CARGO_TARGET_DIR:-$PWD/target}/debug
inspect=${CARGO_TARGET_DIR:-$PWD/../../target}/debug/inspect
work=$(mktemp -d)
cd "$work"
servers=()
trap 'for each in "${servers[@]}"; do kill "$each" 2>/dev/null || true; done; rm -rf "$work"' EXIT
seq 1 3 >few.txt
seq 1 50 >lines.txt

# check WHAT PATTERN COMMAND...: its output has to match.
check() {
    local what=$1 pattern=$2 output
    output=$(timeout 60 "${@:3}" 2>&1 </dev/null) || true
    grep -Eq -- "$pattern" <<<"$output" || { printf 'FAILED: %s: no %s in\n%s\n' "$what" "$pattern" "$output"; exit 1; }
    echo "ok: $what"
}

# As check, with a terminal on which `y` is typed.
check_yes() {
    local output
    output=$( (sleep 2; echo y; sleep 2) | timeout 60 script -qec "${*:3}" /dev/null 2>&1) || true
    grep -Eq -- "$2" <<<"$output" || { printf 'FAILED: %s: no %s in\n%s\n' "$1" "$2" "$output"; exit 1; }
    echo "ok: $1"
}

# The notes, however they are reached.
notes() {
    local name=$1 target=("${@:2}")
    check "$name: add" '^ *id +1$' "$inspect" call add title=milk body=buy kind=todo due.date=2026-12-01 "${target[@]}"
    check "$name: search" '^ *total +1$' "$inspect" call search kind=todo "${target[@]}"
    check "$name: wrong argument" 'idea.*todo.*journal' "$inspect" call search 'kind:="tod"' "${target[@]}"
    check "$name: import with progress" 'progress 3(\.0)? of 3' "$inspect" call import path=few.txt "${target[@]}"
    check "$name: read the list" '4, 3' "$inspect" read notes://all "${target[@]}"
    if [[ $name != notes-rmcp ]]; then
        check "$name: list each" 'notes://1 .*milk' "$inspect" resources "${target[@]}"
    fi
    check "$name: read one" 'milk' "$inspect" read notes://1 "${target[@]}"
    check "$name: complete an id" '^4$' "$inspect" complete 'notes://{id}' id 4 "${target[@]}"
    check "$name: complete a tag" '^imported$' "$inspect" complete review tag i "${target[@]}"
    check "$name: prompt" 'Detailed review.*imported' "$inspect" prompt review tag=imported style=detailed "${target[@]}"
    check_yes "$name: question, 2025-11-25" 'removed.*true' "$inspect" --revision 2025-11-25 call remove id=2 "${target[@]}"
    if [[ $name != notes-rmcp ]]; then
        check_yes "$name: question, 2026-07-28" 'removed.*true' "$inspect" --revision 2026-07-28 call remove id=3 "${target[@]}"
    else
        check_yes "$name: no question in 2026-07-28" 'return InputRequiredResult' \
            "$inspect" --revision 2026-07-28 call remove id=3 "${target[@]}"
    fi
    # Cancelled on the way: some lines are there, and no more come.
    timeout 60 "$inspect" --total 1 call import path=lines.txt "${target[@]}" >/dev/null 2>&1 </dev/null || true
    sleep 1
    check "$name: import was cancelled" '^ *total +([3-9]|1[0-9])$' "$inspect" call search limit=1 "${target[@]}"
}

# serve NAME ARGUMENTS...: starts a server over HTTP, sets $url and $server.
serve() {
    "$bin/$1" "${@:2}" 2>"$1.log" &
    server=$!
    servers+=("$server")
    for _ in $(seq 100); do
        url=$(sed -n 's/^serving at //p' "$1.log")
        [[ -z $url ]] || return 0
        sleep 0.1
    done
    echo "FAILED: $1 does not serve"
    exit 1
}

ends() {
    kill "-$2" "$server"
    wait "$server" || { echo "FAILED: $1 ended with $?"; exit 1; }
    echo "ok: $1 ends at SIG$2"
}

for each in notes notes-rmcp notes-polling; do
    notes "$each" -- "$bin/$each" "$each.db"
done

serve notes-axum notes-axum.db 127.0.0.1:0
notes notes-axum "$url"
check 'notes-axum: page beside it' 'see /mcp' curl -s "${url%mcp}"
ends notes-axum INT

for each in notes notes-polling; do
    timeout 60 "$bin/client" stdio "$bin/$each" "client-$each.db" >client.log 2>&1 || { cat client.log; exit 1; }
    for line in 'added: Note' 'asked: Remove note 1' 'removed: Some("{\"removed\":true}")' 'changed: Resources' \
        'changed: Resource(Text("notes://1"))' 'progress: 1 of' 'timed out after 3' 'wrong: true' 'unknown: ' 'after: StdinClosed'; do
        grep -qF -- "$line" client.log || { echo "FAILED: client: no $line in"; cat client.log; exit 1; }
    done
    echo "ok: client with $each: question, changes, progress, time-out, end"
done

serve smolhttp 127.0.0.1:0 s3cret
check 'smolhttp: 401' 'HTTP/1.1 401' curl -si -d '{}' "$url"
check 'smolhttp: challenge' 'resource_metadata=' curl -si -d '{}' "$url"
check 'smolhttp: metadata' 'authorization_servers' curl -s "${url%/mcp}/.well-known/oauth-protected-resource/mcp"
with=("$inspect" --header 'Authorization: Bearer s3cret')
check 'smolhttp: whoami' 'alice' "${with[@]}" call whoami "$url"
check 'smolhttp: wait with progress' 'waited 200 ms' "${with[@]}" call wait ms=200 "$url"
port=${url##*:}
check 'smolhttp: fetch' '406|405|401' "${with[@]}" call fetch port="${port%/mcp}" path=/mcp "$url"
timeout 60 "$bin/client" http "$url" s3cret >client.log 2>&1 || { cat client.log; exit 1; }
for line in 'without a token: the server wants authorization' 'who: Some("alice")' 'progress: 5 of' 'step 5' 'waited 300 ms' 'waited 600 ms' 'timed out after 2'; do
    grep -qF -- "$line" client.log || { echo "FAILED: client: no $line in"; cat client.log; exit 1; }
done
echo 'ok: client with smolhttp: token, calls at once, progress, logs, time-out'
ends smolhttp TERM

gateway=(-- "$bin/gateway" "ours=$bin/notes gateway-ours.db" "rmcp=$bin/notes-rmcp gateway-rmcp.db")
check 'gateway: tools' 'rmcp_import' "$inspect" tools "${gateway[@]}"
for each in ours rmcp; do
    check "gateway: ${each}_add" '^ *id +1$' "$inspect" call "${each}_add" title=milk body=buy kind=todo "${gateway[@]}"
    check "gateway: ${each}_import" 'progress 3(\.0)? of 3' "$inspect" call "${each}_import" path=few.txt "${gateway[@]}"
    timeout 60 "$inspect" --total 2 call "${each}_import" path=lines.txt "${gateway[@]}" >/dev/null 2>&1 </dev/null || true
    sleep 1
    check "gateway: ${each}_import was cancelled" '^ *total +([5-9]|[12][0-9])$' "$inspect" call "${each}_search" limit=1 "${gateway[@]}"
done
# The tools of a child change while the gateway runs: its client is notified, lists them again, and calls the new one.
send() { # PAUSE JSON
    printf '%s\n' "$2"
    sleep "$1"
}
for revision in 2025-11-25 2025-06-18; do
    {
        send 1 '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"'$revision'","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
        send 0 '{"jsonrpc":"2.0","method":"notifications/initialized"}'
        send 1 '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a_learn","arguments":{"name":"swim"}}}'
        send 0 '{"jsonrpc":"2.0","id":3,"method":"tools/list"}'
        send 1 '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a_swim"}}'
    } | timeout 60 "$bin/gateway" "a=$bin/learner" >gateway.log
    for line in '"tools":{"listChanged":true}' '"logger":"learner","data":{"learned":1}' 'notifications/tools/list_changed' '"name":"a_swim"' 'I am swim'; do
        grep -qF -- "$line" gateway.log || { echo "FAILED: gateway: no $line in"; cat gateway.log; exit 1; }
    done
    ! grep -q '"name":"learner"' gateway.log || { echo 'FAILED: gateway: a result of the child names the child'; exit 1; }
done
echo 'ok: gateway: its tools follow those of a child'
echo 'all checks hold'
