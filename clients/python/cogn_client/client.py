"""The client: one call for a whole answer, one for a stream."""

import secrets
import time
from typing import Any, Dict, Optional
from urllib.parse import quote

from .errors import ConnectionLost
from .retry import NotNow, Retries
from .stream import Stream
from .transport import Answer, Transport


class Client:
    """A server, and the key of the caller. The key is never printed."""

    def __init__(
        self,
        base_url: str,
        key: Optional[str] = None,
        timeout: float = 60.0,
        answer_timeout: float = 600.0,
        max_retries: Optional[int] = None,
    ) -> None:
        """``timeout`` is how long a stream may send nothing, in seconds; heartbeats count as data. A whole answer
        has no heartbeats and may take ``answer_timeout``. ``max_retries`` is how often in a row a call is
        retried; by default as often as the server allows, or three times."""
        self._transport = Transport(base_url, key, timeout)
        self._timeout = timeout
        self._answer_timeout = answer_timeout
        self._max_retries = max_retries

    def execute(
        self,
        module: str,
        input: Any,
        options: Optional[Dict[str, Any]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Runs a module and returns its envelope, with ``ok`` true or false. Retries do not run the module again:
        every try has the same idempotency key, the caller's or a random one."""
        headers = {"accept": "application/json", "idempotency-key": idempotency_key or secrets.token_hex(16)}
        body = _body(input, options)
        retries = Retries(self._max_retries)
        while True:
            try:
                return self._transport.post(_path(module), body, headers, self._answer_timeout).envelope()
            except ConnectionLost as lost:
                pause = retries.pause(lost)
                if pause is None:
                    if isinstance(lost, NotNow) and lost.said is not None:
                        return lost.said
                    raise
            time.sleep(pause)

    def execute_stream(
        self,
        module: str,
        input: Any,
        options: Optional[Dict[str, Any]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Stream:
        """Runs a module, once, and yields its chunks while they are written. Nothing is sent before the first
        event is requested."""
        headers = {"accept": "text/event-stream", "idempotency-key": idempotency_key or secrets.token_hex(16)}

        def open_(place: Optional[Dict[str, Any]]) -> Answer:
            body = _body(input, options)
            if place is not None:
                body["_recovery"] = place
            return self._transport.post(_path(module), body, headers, self._timeout)

        return Stream(open_, Retries(self._max_retries))


def _path(module: str) -> str:
    return f"/v1/modules/{quote(module, safe='')}/execute"


def _body(input: Any, options: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    body: Dict[str, Any] = {"input": input}
    if options:
        body["_options"] = options
    return body
