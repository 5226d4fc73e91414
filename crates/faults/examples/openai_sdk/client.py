"""Shows what the OpenAI SDK makes of a provider that breaks.

    turnbuckle faults serve --script crates/faults/examples/openai_sdk/faults.toml
    pip install openai
    python crates/faults/examples/openai_sdk/client.py http://127.0.0.1:4010/v1
"""

import json
import sys
import urllib.request

import openai

base_url = sys.argv[1]
client = openai.OpenAI(base_url=base_url, api_key="any")


def ask(word):
    """Streams one answer; says how it ended and how much of it came."""
    text, finish = "", None
    try:
        stream = client.chat.completions.create(
            model="faults",
            messages=[{"role": "user", "content": word}],
            stream=True,
        )
        for chunk in stream:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
        ended = f"ended, finish_reason={finish!r}"
    except Exception as error:
        ended = f"raised {type(error).__module__}.{type(error).__name__}: {error}"
    return f"{ended}; {len(text)} characters came"


def record():
    """What the server saw, by its own count."""
    root = base_url.removesuffix("/v1")
    with urllib.request.urlopen(f"{root}/_faults/requests") as answer:
        return json.load(answer)


print(f"openai {openai.__version__}, Python {sys.version.split()[0]}")
seen = 0
for word in ["refused", "dropped", "torn", "quiet"]:
    print(f"{word}: {ask(word)}")
    for request in record()[seen:]:
        seen += 1
        print(f"    request {seen}: {request['behaviour']}, {request['ended']}")
