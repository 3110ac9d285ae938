# `sheaf bench attention BATCH...`: a row a variant; what no clock decides is exact.
. "$CASE/../prelude"
[ -z "$SANITIZER" ] || skip "timings of an instrumented program mean nothing"
sheaf bench attention q70,2q1s65 q2kv33 --heads 4 --kv-heads 2 --backward --json -q -t 1 --isa scalar > out.json
jq -r '.rows[] | [.batch, .variant, .path, .passes, ."bytes x min" >= 1, ."time ms" > 0, ."gap x" > 0] | @tsv' out.json
jq -r '.rows[0] | keys_unsorted | join(",")' out.json
sheaf bench attention q2 --bidirectional --softcap 20 --json -q -t 1 | jq -r '.rows[] | [.variant, .passes] | @tsv'
sheaf bench attention q2x
sheaf bench attention q3 --heads 5 --kv-heads 2
sheaf bench attention q3 --bidirectional --window 2
