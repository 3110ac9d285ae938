# A stop string ends the output before itself wherever the tokens' borders are: the text of a long
# run is cut at each of its substrings, the earliest match wins, and the row names it.
. "$CASE/../prelude"
documents 1 60
python3 - "$SHEAF" <<'END'
import json, subprocess, sys
def run(*options):
    command = [sys.argv[1], "run", "docs/0001.txt", "-p", "x", "-q", "-n", "24", "--ignore-eos", *options]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
free = run()
text = free["text"]
print("free run:", free["finish_reason"], "stop_string" in free)
cuts = [(at, length) for at in (1, 4, 9, 15) for length in (1, 3, 7) if at + length < len(text) - 2]
wrong = 0
for at, length in cuts:
    stop = text[at:at + length]
    if stop.startswith("-") or "\ufffd" in stop:
        continue
    row = run("--stop", "never said", "--stop=" + stop)
    expected = text[:text.index(stop)]
    fine = (row["text"], row["finish_reason"], row["stop_string"]) == (expected, "stop", stop)
    fine = fine and row["tokens"]["completion"] <= free["tokens"]["completion"]
    if not fine:
        wrong += 1
        print("stop", repr(stop), "gave", repr(row["text"]), "expected", repr(expected))
print("wrong:", wrong)
both = run("--stop=" + text[8:12], "--stop=" + text[2:5])
print("the earlier wins:", both["stop_string"] == text[2:5])
END
