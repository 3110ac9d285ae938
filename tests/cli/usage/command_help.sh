# Every command explains itself on stdout: -h shortly, --help completely, `help COMMAND` likewise.
for command in run plan verify tokenize model bench; do
    "$SHEAF" $command -h > short && "$SHEAF" $command --help > long && "$SHEAF" help $command > helped
    echo "$command: exit $?, $(head -n 1 short)"
    cmp long helped
    [ "$(wc -l < short)" -lt "$(wc -l < long)" ] || echo "the short help is not shorter"
    grep -q -e '--model' long || [ $command = bench ] || echo "--model is missing"
    awk 'length > 120 { print FILENAME ": a line of " length " columns: " $0 }' short
done
