#!/usr/bin/env bash
# inspect, and guarded or the bridge, against a real authorization server: oidc-provider, on 127.0.0.1, over plain HTTP. run.sh starts it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

folder="$(mktemp -d)"
pids=()
stop() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    pids=()
}
trap 'stop; rm -rf "$folder"' EXIT

passed=0 failed=0
# check WHAT COMMAND...: one line, and what was printed last if the command fails.
check() {
    local what="$1"; shift
    if "$@"; then
        passed=$((passed + 1)); echo "ok      $what"
    else
        failed=$((failed + 1)); echo "FAILED  $what"
        sed 's/^/        /' "$folder/out" "$folder/err"
        sed 's/^/        provider: /' "$folder/provider"
    fi
}

# start SCOPES [bridge]: a new provider, and the protected server behind it: guarded, or the bridge in front of calc.
start() {
    local port
    port="$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')"
    url="http://127.0.0.1:$port/mcp"
    rm -f "$folder/issuer"
    SCOPES="$1" node as.mjs "$url" "$folder" > "$folder/provider" 2> "$folder/provider.err" & pids+=($!)
    for _ in $(seq 600); do [ -f "$folder/issuer" ] && break; sleep 0.1; done
    issuer="$(cat "$folder/issuer")" || { cat "$folder/provider.err" >&2; exit 1; }
    local server=("$GUARDED" "127.0.0.1:$port" "$issuer" "$folder/keys.json")
    [ $# = 1 ] || server=("$BRIDGE" --listen "$port" --issuer "$issuer" --resource "$url" --scope notes:read -- "$CALC" stdio)
    "${server[@]}" > /dev/null 2>&1 & pids+=($!)
    for _ in $(seq 600); do curl -s -m 2 -o /dev/null "$url" && break; sleep 0.1; done
}

# client ARGS...: runs inspect with a browser that logs in; `visits` and `provider` then have the lines of this run alone.
client() {
    : > "$folder/visits"
    local before; before=$(wc -l < "$folder/provider")
    status=0
    XDG_CONFIG_HOME="$home" BROWSER="node browser.mjs" VISITS="$folder/visits" \
        timeout 120 "$INSPECT" "$@" > "$folder/out" 2> "$folder/err" < /dev/null || status=$?
    tail -n +$((before + 1)) "$folder/provider" > "$folder/asked"
}

# How many lines of the provider's log match; how many visits there were; whether the client printed a text.
asked() { grep -cE "$1" "$folder/asked" || true; }
visits() { wc -l < "$folder/visits"; }
said() { [ "$status" = 0 ] && grep -qF "$1" "$folder/out"; }
refused() { [ "$status" != 0 ] && grep -qF "$1" "$folder/err"; }
# kept MEMBER: the member of the client's token, from its file.
kept() { node -p "JSON.parse(fs.readFileSync(process.argv[1])).tokens[0][process.argv[2]]" "$home"/mcp-sansio-inspect/*.json "$1" 2> /dev/null || true; }
is() { [ "$1" = "$2" ] || { echo "        $1 is not $2"; false; }; }
status_of() { curl -s -m 10 -o "$folder/out" -w '%{http_code}' "$@"; }
call() { status_of -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' "$url"; }
refresh() { status_of -d "grant_type=refresh_token&refresh_token=$1&client_id=$2" "$issuer/token"; }

echo 600 > "$folder/ttl"
: > "$folder/out" > "$folder/err"

# Scopes of the resource that the provider lists as its own, or not: it then refuses to register clients with them.
for scopes in all few; do
    echo "provider with scopes: $scopes"
    home="$folder/home-$scopes"
    start "$scopes"

    client call read "$url"
    check "a login, and the call" said "water the plants"
    check "  both metadata documents lead to one visit" is "$(asked '^GET /.well-known/.* 200') $(visits)" "1 1"
    check "  the client registers" is "$(asked '^POST /reg 201')" 1
    check "  registrations refused for their scopes" is "$(asked '^POST /reg 400')" "$([ "$scopes" = all ] && echo 0 || echo 1)"
    check "  a refresh token is asked for, with consent" is "$(asked 'scope=notes:read.* offline_access prompt=consent$')" 1
    check "  one code becomes a token" is "$(asked '^POST /token 200 authorization_code')" 1

    client tools "$url"
    check "another run lists both tools" said erase
    check "  without login or token request" is "$(visits) $(wc -l < "$folder/asked")" "0 0"

    echo 2 > "$folder/ttl"
    client call erase "$url"
    check "a tool that needs a second scope" said "The notes are gone"
    check "  one visit that asks for both scopes" is "$(visits) $(asked 'scope=notes:read offline_access notes:write|scope=notes:read notes:write')" "1 1"
    check "  with the same client" is "$(asked '^POST /reg')" 0

    old_access="$(kept access_token)" old_refresh="$(kept refresh_token)"
    echo 600 > "$folder/ttl"
    sleep 2
    client call erase "$url"
    check "a token that has ended is refreshed" said "The notes are gone"
    check "  by one request, without login" is "$(asked '^POST /token 200 refresh_token') $(visits)" "1 0"
    access="$(kept access_token)" refresh="$(kept refresh_token)" id="$(kept client_id)"
    check "  both tokens are new" test "$access" != "$old_access" -a "$refresh" != "$old_refresh"

    check "the server takes the token" is "$(call "$access")" 200
    check "  and none with another signature" is "$(call "${access%.*}.$(printf '%s' "${access##*.}" | rev)")" 401

    client logout "$url"
    check "logout" said "The login is forgotten"
    check "  revokes at the provider" is "$(asked '^POST /token/revocation 200')" 1
    check "  nothing is kept" is "$(ls "$home/mcp-sansio-inspect")" ""
    check "  the refresh token is of no use" is "$(refresh "$refresh" "$id")" 400

    DENY=1 client call read "$url"
    check "a user who gives up: the client says why" refused access_denied

    export SECRET="another secret"
    client --client-id known --client-secret-env SECRET tools "$url"
    check "a client that was registered before: a wrong secret is refused" refused invalid_client
    export SECRET="the secret of known"
    client --client-id known --client-secret-env SECRET tools "$url"
    check "  the right one is not" said erase
    check "  it does not register" is "$(asked '^POST /reg')" 0

    stop
    client logout "$url"
    check "logout without a provider" said "The login is forgotten"
    check "  says that the token is good still" grep -q "The token is not revoked" "$folder/err"
    check "  nothing is kept" is "$(ls "$home/mcp-sansio-inspect")" ""
done

echo "the bridge, which fetches the keys itself"
home="$folder/home-bridge"
start all bridge
client call add a=2 b=3 "$url"
check "a login, and the call" said 5
check "  with the scope of the bridge" is "$(asked 'scope=notes:read offline_access') $(visits)" "1 1"
check "  the keys are fetched once" is "$(grep -c '^GET /jwks 200' "$folder/provider")" 1
client call add a=2 b=4 "$url"
check "another run" said 6
check "  without login or any request" is "$(visits) $(wc -l < "$folder/asked")" "0 0"
access="$(kept access_token)"
check "the bridge takes the token" is "$(call "$access")" 200
check "  and none with another signature" is "$(call "${access%.*}.$(printf '%s' "${access##*.}" | rev)")" 401
stop

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
