# Names with spaces, quotes, newlines and bytes that are not UTF-8: rows are valid JSON, paths are
# percent-escaped where they must be, and no two files share an id.
. "$CASE/../prelude"
mkdir docs
python3 - <<'END'
import os
for name in [b"plain.txt", b"a b.txt", b"'quote\".txt", b"new\nline.txt", b"latin\xe9.txt",
             "umlaut\u00e4.txt".encode(), b"percent%0A.txt", b"100%\x01.txt", b"-n", b"tab\t.txt"]:
    with open(b"docs/" + name, "wb") as file:
        file.write(b"text of " + name.hex().encode())
END
sheaf run docs -p x -n 4 -q -o out.jsonl
rows out.jsonl | jq -c '[.index, .id, .status]'
python3 "$CASE/../check_schema.py" row out.jsonl
cd docs && sheaf run -q -p x -n 4 -- -n | jq -c .id
