"""A recovering stream: it requests the rest when the connection or the server is lost, and starts over
when the server cannot resume there. It yields the chunks as the server wrote them.
"""

import json
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Optional

from .assembly import Assembly
from .envelope import envelope_of
from .errors import ConnectionLost, ProtocolError
from .retry import NotNow, Retries
from .sse import events
from .transport import Answer

#: Opens the stream, from the resume point if there is one.
Open = Callable[[Optional[Dict[str, Any]]], Answer]

#: Exceptions raised for a chunk of the wrong shape.
_MISSHAPEN = (AttributeError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True)
class Event:
    """One event. ``kind`` is meta, chunk, progress, final, error, or ``restart``: then everything received
    so far is void, and the stream starts over."""

    kind: str
    body: Dict[str, Any]


class Stream:
    """Iterate over it once. Afterwards ``envelope`` is the complete answer."""

    def __init__(self, open_: Open, retries: Optional[Retries] = None) -> None:
        self._open = open_
        self._retries = retries or Retries()
        self._closed = threading.Event()
        self._answer: Optional[Answer] = None
        self._assembly = Assembly()
        self._furthest = 0
        self.session_id: Optional[str] = None
        self.envelope: Optional[Dict[str, Any]] = None
        #: How often the stream was reopened.
        self.recoveries = 0

    @property
    def data(self) -> Any:
        """The data received so far."""
        return self._assembly.data

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the stream for good, from any thread; no more events follow. The server continues the run for a
        while, or ends it, depending on its settings."""
        self._closed.set()
        self._hang_up()

    def _hang_up(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.close()

    def __iter__(self) -> Iterator[Event]:
        while self.envelope is None and not self._closed.is_set():
            lost = None
            try:
                yield from self._connection()
            except ConnectionLost as error:
                lost = error
            except Exception:
                # A close from another thread shuts down the connection that this thread reads.
                if not self._closed.is_set():
                    raise
            finally:
                self._hang_up()
            if lost is not None and not self._closed.is_set():
                yield from self._ask_again(lost)

    def _ask_again(self, lost: ConnectionLost) -> Iterator[Event]:
        """Waits for the next try. When no retry is left, the last refusal is the answer."""
        pause = self._retries.pause(lost)
        if pause is not None:
            self.recoveries += 1
            self._closed.wait(pause)
        elif isinstance(lost, NotNow) and lost.said is not None:
            self.envelope = envelope_of(lost.said)
            yield Event("error", lost.said)
        else:
            raise lost

    def _connection(self) -> Iterator[Event]:
        """The events of one connection, up to the end of the answer or of the connection."""
        self._answer = answer = self._open(self._place())
        if self._closed.is_set():
            return
        if not answer.is_stream:
            # A module that does not stream, or a refusal: the envelope is the whole answer.
            self.envelope = answer.envelope()
            yield Event("final" if self.envelope["ok"] else "error", self.envelope)
            return
        if self.session_id is None:
            # Set before the first event, so that even a stream that is lost at once can be resumed.
            self.session_id = answer.headers.get("x-cognitive-session")
        for kind, text in events(answer.lines()):
            try:
                yield from self._take(kind, json.loads(text))
            except _MISSHAPEN as error:
                raise ProtocolError(f"malformed event {kind!r}") from error
            if self.envelope is not None or self._closed.is_set():
                return
        raise ConnectionLost("stream closed early")

    def _take(self, kind: str, body: Dict[str, Any]) -> Iterator[Event]:
        if kind == "meta":
            session_id = body["session_id"]
            if not self._goes_on(session_id, body.get("resume_from_seq", 1)):
                self._assembly.clear()
                yield Event("restart", body)
            self.session_id = session_id
        elif kind == "chunk":
            if not self._assembly.add(body["chunk"]):
                # Not the expected continuation, so nothing in it is used.
                self._assembly.clear()
                self.session_id = None
                yield Event("restart", {})
                raise ConnectionLost("stream resumed at another position")
            if self._assembly.last_seq > self._furthest:
                # Repeated chunks are not progress: a stream that fails at the same chunk each time must
                # run out of retries.
                self._furthest = self._assembly.last_seq
                self._retries.forget()
        elif kind == "final":
            self.envelope = envelope_of({**body, "final": True})
        elif kind == "error":
            self._fail({**body, "streaming": True})
        yield Event(kind, body)

    def _goes_on(self, session_id: str, resume_from_seq: int) -> bool:
        """Whether a meta chunk is the first one, or the expected one after a recovery."""
        expected = self._assembly.last_seq + 1
        return expected == 1 or (session_id == self.session_id and resume_from_seq == expected)

    def _fail(self, body: Dict[str, Any]) -> None:
        error = body["error"]
        recovery = error.get("recovery")
        if error.get("recoverable") and recovery is not None:
            wait, tries = recovery.get("retry_after_ms"), recovery.get("max_retries")
            wait = None if wait is None else wait / 1000
            raise NotNow(error["message"], body, wait, None if tries is None else int(tries))
        self.envelope = envelope_of(body)

    def _place(self) -> Optional[Dict[str, Any]]:
        if self.session_id is None:
            return None
        place: Dict[str, Any] = {"session_id": self.session_id, "last_seq": self._assembly.last_seq}
        if self._assembly.last_checkpoint is not None:
            place["last_checkpoint"] = self._assembly.last_checkpoint
        return place
