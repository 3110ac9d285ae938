# Without a driver --device cuda says why it cannot, before anything is written; auto computes on.
. "$CASE/../prelude"
echo text > a.txt
mkdir empty
for device in cuda cuda:1; do
    LD_LIBRARY_PATH=$PWD/empty "$SHEAF" run a.txt -p x -n 2 -q -o out --device $device 2> err
    echo "exit $?: $(sed 's/\(no CUDA device\): .*/\1/' err)"
done
[ -e out ] && echo "an output was made"
"$SHEAF" run a.txt -p x -n 2 -q --device cuda:x 2> err
echo "exit $?: $(head -n 1 err)"
sheaf run a.txt -p x -n 2 -q | jq -r .numerics | grep -c '^cpu-'
for option in '--weights-memory 1G --device cuda' '--kv-dtype f16'; do
    # shellcheck disable=SC2086
    "$SHEAF" run a.txt -p x -n 2 -q $option > rows 2> err
    echo "exit $?: $(sed 's/\(no CUDA device\): .*/\1/' err)"
done
true
