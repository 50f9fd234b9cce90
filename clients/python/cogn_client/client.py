"""The client: one call for a whole answer, one for a stream."""

from typing import Any, Dict, Optional
from urllib.parse import quote

from .stream import Stream
from .transport import Answer, Transport


class Client:
    """A server, and the key that it knows us by. The key is never printed."""

    def __init__(self, base_url: str, key: Optional[str] = None, timeout: float = 60.0) -> None:
        """``timeout`` is how long the server may be silent, in seconds; heartbeats count as a sound."""
        self._transport = Transport(base_url, key, timeout)

    def execute(self, module: str, input: Any, options: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """Runs a module and returns its envelope, with ``ok`` true or false."""
        body = _body(input, options)
        return self._transport.post(_path(module), body, {"accept": "application/json"}).json()

    def execute_stream(self, module: str, input: Any, options: Optional[Dict[str, Any]] = None) -> Stream:
        """Runs a module and yields its chunks while they are written. Nothing is sent before the first
        event is asked for."""

        def open_(place: Optional[Dict[str, Any]]) -> Answer:
            body = _body(input, options)
            headers = {"accept": "text/event-stream"}
            if place is not None:
                body["_recovery"] = place
            return self._transport.post(_path(module), body, headers)

        return Stream(open_)


def _path(module: str) -> str:
    return f"/v1/modules/{quote(module, safe='')}/execute"


def _body(input: Any, options: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    body: Dict[str, Any] = {"input": input}
    if options:
        body["_options"] = options
    return body
