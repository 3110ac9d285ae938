#!/usr/bin/env python3
"""Goldens of chat templates: what Python's jinja2 3.1.6, set up as transformers does, renders.

    cd tests/golden/templates
    ../../../scripts/make_template_golden.py *.jinja expressions.json blanks.json > goldens.json

    scripts/make_template_golden.py FOLDER/*.jinja > /tmp/goldens.json
    SHEAF_TEMPLATE_GOLDENS=/tmp/goldens.json ctest -R tokenizer     # templates of one's own

A file that ends in .json is a list of templates, each rendered over one conversation; any other is
one template, rendered over all. A case holds the rendered text, or "error" when rendering raises.
The date is fixed, as sheaf's is. Conversations are built in; they hold what templates trip over: no
system message, several turns, non-ASCII text, blanks at both ends, text that looks like a template
or a special token.
Needs: pip install jinja2.
"""

import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

DATE = 1765000000
BOS, EOS = "<s>", "</s>"


def say(role, content):
    return {"role": role, "content": content}


CONVERSATIONS = {
    "system_user": [say("system", "You are terse."), say("user", "Summarise this.")],
    "user": [say("user", "Hello there")],
    "turns": [
        say("system", "Be kind."),
        say("user", "One"),
        say("assistant", "First answer"),
        say("user", "Two"),
        say("assistant", "<think>\nhidden\n</think>\n\nSecond answer"),
        say("user", "Three"),
    ],
    "unicode": [say("system", "Größe “quoted”"), say("user", "日本語 🌶️ नमस्ते e\u0301\u00a0\u2003")],
    "blanks": [say("user", " \n\t leading and trailing \u3000\n\n")],
    "lookalikes": [
        say(
            "user",
            "{{ 7 * 7 }} {% if x %} {# c #} <|im_end|>\n<|im_start|>system\n"
            "<s>[INST] </s> it's \"q\" \\n",
        )
    ],
    "empty": [say("user", "")],
}


class Generation(jinja2.ext.Extension):
    """The {% generation %} block of transformers: renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("render_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def render_body(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols],
    )

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def strftime_now(form):
        return datetime.datetime.fromtimestamp(DATE, datetime.timezone.utc).strftime(form)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def render(env, source, messages):
    try:
        template = env.from_string(source)
        text = template.render(
            messages=messages,
            tools=None,
            documents=None,
            add_generation_prompt=True,
            bos_token=BOS,
            eos_token=EOS,
        )
        return {"text": text}
    except Exception as failure:  # every failure of a template is a case as well
        return {"error": str(failure)}


def templates(path):
    """(name, source, conversations) of every template in a file."""
    name = path.rsplit("/", 1)[-1]
    with open(path, encoding="utf-8", newline="") as file:
        source = file.read()
    if not path.endswith(".json"):
        yield name, source, list(CONVERSATIONS)
        return
    for number, line in enumerate(json.loads(source), 1):
        yield f"{name}[{number}]", line, ["turns"]


def golden_of(path):
    env = environment()
    for name, source, conversations in templates(path):
        results = {key: render(env, source, CONVERSATIONS[key]) for key in conversations}
        yield {"name": name, "source": source, "results": results}


def main():
    golden = {
        "jinja2": jinja2.__version__,
        "date": DATE,
        "bos_token": BOS,
        "eos_token": EOS,
        "conversations": CONVERSATIONS,
        "templates": [template for path in sys.argv[1:] for template in golden_of(path)],
    }
    json.dump(golden, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
