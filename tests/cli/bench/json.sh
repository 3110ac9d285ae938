# `sheaf bench ... --json` is JSON; the numbers themselves are no test.
. "$CASE/../prelude"
[ -z "$SANITIZER" ] || skip "timings of an instrumented program mean nothing"
sheaf bench ceilings --json -q | jq -c 'type'
sheaf bench
sheaf bench nothing
