"""A stream that survives: it asks for the rest when the connection or the server is lost, and starts over
when the server cannot go on from where it was. What it yields are the chunks as the server wrote them.
"""

import json
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Optional

from .assembly import Assembly
from .errors import ConnectionLost, ProtocolError
from .sse import events
from .transport import Answer

#: Opens the stream; given a place, from there.
Open = Callable[[Optional[Dict[str, Any]]], Answer]

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_TRIES = 3


@dataclass(frozen=True)
class Event:
    """One thing that happened. ``kind`` is meta, chunk, progress, final, error, or ``restart``: then all
    that was received so far is void, and the stream begins again."""

    kind: str
    body: Dict[str, Any]


class Stream:
    """Iterate over it once. Afterwards ``envelope`` is the whole answer."""

    def __init__(self, open_: Open, sleep: Callable[[float], None] = time.sleep) -> None:
        self._open = open_
        self._sleep = sleep
        self._answer: Optional[Answer] = None
        self._assembly = Assembly()
        self._failures = 0
        self._tries = _TRIES
        self.session_id: Optional[str] = None
        self.envelope: Optional[Dict[str, Any]] = None
        #: How often the stream was picked up again.
        self.recoveries = 0

    @property
    def data(self) -> Any:
        """The data as far as it has come."""
        return self._assembly.data

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up. The server keeps the run for a while, or ends it, as its settings say."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def __iter__(self) -> Iterator[Event]:
        while self.envelope is None:
            try:
                yield from self._connection()
            except ConnectionLost as error:
                self._pause(error)
            finally:
                self.close()

    def _connection(self) -> Iterator[Event]:
        """The events of one connection, up to the end of the answer or of the connection."""
        self._answer = self._open(self._place())
        if not self._answer.is_stream:
            # A module that does not stream, or a refusal: the envelope is the whole answer.
            self.envelope = self._answer.json()
            yield Event("final" if self.envelope.get("ok") else "error", self.envelope)
            return
        if self.session_id is None:
            # Known before the first event, so that even a stream that is lost at once is found again.
            self.session_id = self._answer.headers.get("x-cognitive-session")
        for kind, text in events(self._answer.lines()):
            try:
                body = json.loads(text)
            except ValueError:
                raise ProtocolError("an event without JSON") from None
            if kind == "meta":
                yield from self._begin(body)
                yield Event(kind, body)
            elif kind == "chunk":
                if not self._assembly.add(body["chunk"]):
                    # Not the continuation that was expected, so nothing here can be trusted.
                    self._assembly.clear()
                    self.session_id = None
                    yield Event("restart", {})
                    raise ConnectionLost("the stream went on at another place")
                self._failures = 0
                yield Event(kind, body)
            elif kind == "final":
                self.envelope = {"ok": True, "meta": body["meta"], "data": body["data"]}
                yield Event(kind, body)
                return
            elif kind == "error":
                yield from self._fail(body)
                return
            else:
                yield Event(kind, body)
        raise ConnectionLost("the stream broke off")

    def _begin(self, body: Dict[str, Any]) -> Iterator[Event]:
        """A meta chunk: the first of all, the first after a recovery, or the first of another stream."""
        expected = self._assembly.last_seq + 1
        goes_on = body["session_id"] == self.session_id and body.get("resume_from_seq", 1) == expected
        if self.session_id is not None and not goes_on and expected > 1:
            self._assembly.clear()
            yield Event("restart", body)
        self.session_id = body["session_id"]

    def _fail(self, body: Dict[str, Any]) -> Iterator[Event]:
        error = body["error"]
        recovery = error.get("recovery")
        if error.get("recoverable") and recovery is not None and self._failures < self._allowed(recovery):
            self._failures += 1
            self.recoveries += 1
            self._sleep(recovery.get("retry_after_ms", 1000) / 1000)
            return
        self.envelope = {key: value for key, value in body.items() if key not in ("streaming", "session_id")}
        yield Event("error", body)

    def _allowed(self, recovery: Dict[str, Any]) -> int:
        self._tries = recovery.get("max_retries", _TRIES)
        return self._tries

    def _place(self) -> Optional[Dict[str, Any]]:
        if self.session_id is None:
            return None
        place: Dict[str, Any] = {"session_id": self.session_id, "last_seq": self._assembly.last_seq}
        if self._assembly.last_checkpoint is not None:
            place["last_checkpoint"] = self._assembly.last_checkpoint
        return place

    def _pause(self, error: ConnectionLost) -> None:
        if self._failures >= self._tries:
            raise error
        self._sleep(min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE))
        self._failures += 1
        self.recoveries += 1
