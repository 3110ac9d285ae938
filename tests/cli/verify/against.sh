# Another program's logits are held against the reference: a file of zeros is wrong by exactly the
# reference itself, and a file that contradicts itself or the model is refused by name.
. "$CASE/../prelude"
logits() { # FILE MAGIC VOCAB COUNT TOKEN FLOATS
    python3 - "$@" << 'END'
import struct, sys
name, magic, vocab, count, token, floats = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
with open(name, "wb") as file:
    file.write(magic.encode() + b"\n" + struct.pack("<2i", vocab, count))
    file.write(struct.pack("<i", token) * count + bytes(4 * floats))
END
}
vocab=$("$SHEAF" model info --json | jq .vocabulary)
logits zeros logits1 "$vocab" 70 3 $((70 * vocab))
"$SHEAF" verify --against zeros --json > report
echo "exit $?"
jq -c '[.numerics, .positions, .not_finite, .relative_l2, .relative_l2_max, .kl_mean > 0]' report
cat zeros | "$SHEAF" verify --against /dev/stdin --json | jq -c 'del(.numerics)' > piped
jq -c 'del(.numerics)' report > filed
same 'a file and a pipe' filed piped
logits magic logits2 "$vocab" 1 3 "$vocab"
logits vocab logits1 7 1 3 7
logits count logits1 "$vocab" 100000 3 0
logits token logits1 "$vocab" 1 "$vocab" "$vocab"
logits short logits1 "$vocab" 70 3 $((69 * vocab))
for name in magic vocab count token short absent; do
    "$SHEAF" verify --against $name 2>&1
    echo "exit $?"
done
