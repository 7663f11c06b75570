#!/usr/bin/env bash
# The official conformance suites, and a gate that is stricter than theirs:
#   tests/conformance/run.sh server                    builds and starts our fixture
#   tests/conformance/run.sh server --url URL          takes a server that is there
#   tests/conformance/run.sh server --record           writes down what has to pass
# More options: --help. What is pinned and what is checked: README.md.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
case " $* " in *" --help "* | *" -h "*) ;; *) "$here/install.sh" ;; esac
exec "${PYTHON:-python3}" "$here/runner.py" "$@"
