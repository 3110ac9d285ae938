"""What the runners inside the rivals' environments have in common: a conversation in JSON lines.

The first line in is the configuration, and "ready" the first one out. After that each line in is
a request, {"prompts": [[id, ...], ...], "new_tokens": n}, and each line out what came of it: the
seconds it took, the new ids of each prompt, and how many prompt tokens were computed if known.
"""

import json
import os
import sys
import time

WARM_UP_TOKENS = 32


def serve(load, answer):
    """load(configuration) → engine; answer(engine, prompts, new_tokens) → ids, computed."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print belongs to the log

    def reply(message):
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    engine = load(json.loads(sys.stdin.readline()))
    answer(engine, [list(range(100, 100 + WARM_UP_TOKENS))], 2)
    reply({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        started = time.monotonic()
        ids, computed = answer(engine, request["prompts"], request["new_tokens"])
        reply({"seconds": time.monotonic() - started, "ids": ids, "computed": computed})
