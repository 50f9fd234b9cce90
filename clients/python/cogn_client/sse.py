"""Parses server-sent events from lines of bytes, as far as a stream of chunks uses them."""

from typing import Iterable, Iterator, Tuple


def events(lines: Iterable[bytes]) -> Iterator[Tuple[str, str]]:
    """``(event, data)`` for every complete event. An incomplete one is dropped."""
    name, data = "message", []
    for line in lines:
        if not line.endswith(b"\n"):
            return
        text = line.rstrip(b"\r\n").decode(errors="replace")
        if not text:
            if data:
                yield name, "\n".join(data)
            name, data = "message", []
        elif not text.startswith(":"):
            key, _, value = text.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if key == "event":
                name = value
            elif key == "data":
                data.append(value)
