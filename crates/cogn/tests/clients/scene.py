"""What the tests of vendors' clients know of the servers that were started for them."""

import json
import os
import urllib.request
from typing import Literal

from pydantic import BaseModel

OPEN = os.environ["OPEN_URL"]
"""A server that asks for no key, in front of everything below."""
CLOSED = os.environ["CLOSED_URL"]
"""A server that asks for keys, in front of the embedded model alone."""
KEY = os.environ["CLOSED_KEY"]
SLOW_KEY = os.environ["SLOW_KEY"]
"""A key that may be used once in an hour."""
LLAMA = os.environ["LLAMA_URL"]
"""The model server itself."""

REAL = ["llama", "embedded"]
"""Models that really answer: a model server, and the one in the process."""
SCRIPTED = ["scripted-openai", "scripted-anthropic"]
"""Scripts that speak either dialect, for what a small model cannot be trusted to do."""

QUESTION = [{"role": "user", "content": "Name a colour."}]
WEATHER = "What is the weather in Bern?"
ANSWER = "It is 22 degrees in Bern."
DYING = "Please die in the middle."
BUSY = "This is one too many."
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
COUNTED = {"rationale": 'Größe und "quotes", 日本', "n": 3, "list": ["a", "b"], "deep": {"text": "end"}}
"""What the module `counter` answers."""


class Ticket(BaseModel):
    """An answer that even a small model can give, once it is held to its schema."""

    label: Literal["billing", "bug", "other"]
    urgent: bool


def post(url: str, body: dict) -> dict:
    """A request without any client."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def booked(model: str) -> dict:
    """What the server has in its books for a model."""
    with urllib.request.urlopen(f"{OPEN}/v1/usage?by=model") as answer:
        lines = json.load(answer)["data"]["lines"]
    none = {"runs": 0, "input_tokens": 0, "output_tokens": 0}
    return next((line for line in lines if line["model"] == model), none)
