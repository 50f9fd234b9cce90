"""Setup of the tests of vendors' clients: the servers started for them."""

import json
import os
import urllib.request
from typing import Literal

from pydantic import BaseModel

OPEN = os.environ["OPEN_URL"]
"""A server without authentication, in front of all back-ends below."""
CLOSED = os.environ["CLOSED_URL"]
"""A server with authentication, in front of the embedded model only."""
KEY = os.environ["CLOSED_KEY"]
SLOW_KEY = os.environ["SLOW_KEY"]
"""A key with a rate limit of one request per hour."""
LLAMA = os.environ["LLAMA_URL"]
"""The model server itself."""

REAL = ["llama", "embedded"]
"""Real models: a model server, and the embedded model."""
SCRIPTED = ["scripted-openai", "scripted-anthropic"]
"""Scripts in either dialect, for behaviour that a small model does not show reliably."""

QUESTION = [{"role": "user", "content": "Name a colour."}]
WEATHER = "What is the weather in Bern?"
ANSWER = "It is 22 degrees in Bern."
DYING = "Please die in the middle."
BUSY = "This is one too many."
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
COUNTED = {"rationale": 'Größe und "quotes", 日本', "n": 3, "list": ["a", "b"], "deep": {"text": "end"}}
"""The answer of the module `counter`."""


class Ticket(BaseModel):
    """An answer that a small model can give with a constrained schema."""

    label: Literal["billing", "bug", "other"]
    urgent: bool


def post(url: str, body: dict) -> dict:
    """A request without a vendor's client."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def booked(model: str) -> dict:
    """The recorded usage of a model."""
    with urllib.request.urlopen(f"{OPEN}/v1/usage?by=model") as answer:
        lines = json.load(answer)["data"]["lines"]
    none = {"runs": 0, "input_tokens": 0, "output_tokens": 0}
    return next((line for line in lines if line["model"] == model), none)
