# A terminal on stdin is not waited for.
. "$CASE/../prelude"
python3 - "$SHEAF" <<'END' || skip "no pseudo-terminal: /dev/pts is not mounted"
import os, subprocess, sys
try:
    parent, child = os.openpty()
except OSError:
    sys.exit(1)
run = subprocess.run([sys.argv[1], "run", "-p", "x"], stdin=child, capture_output=True, timeout=60)
print("exit", run.returncode, run.stderr.decode().strip())
END
