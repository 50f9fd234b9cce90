"""Whether to retry, and how long to wait before: as long as the server requests, or with backoff."""

import random
import time
from email.utils import parsedate_to_datetime
from typing import Any, Dict, Optional

from .errors import ConnectionLost

#: The longest wait that a server may request, in seconds; a longer one is cut to it.
_WAIT_MAX = 60.0
#: Short after a disconnect, and finally long enough for a server restart.
_FIRST_PAUSE = 0.2
_GROWTH = 5
_PAUSE_MAX = 10.0
_TRIES = 3

# Temporary refusals by the server or a proxy. ``recoverable`` does not identify them: an invalid input is
# recoverable too, with another input.
_NOT_NOW = (408, 429, 502, 503, 504)


class NotNow(ConnectionLost):
    """A temporary refusal. It is the final answer when the retries are used up."""

    def __init__(
        self,
        message: str,
        said: Optional[Dict[str, Any]] = None,
        wait: Optional[float] = None,
        max_retries: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        #: The envelope or the error chunk; ``None`` for the page of a proxy.
        self.said = said
        self.wait = wait
        self.max_retries = max_retries


class Retries:
    """Counts consecutive failures. Progress resets the count."""

    def __init__(self, max_retries: Optional[int] = None) -> None:
        """The limit of the caller takes precedence over that of the server."""
        self._own = max_retries
        self._allowed = _TRIES if max_retries is None else max_retries
        self._failures = 0

    def forget(self) -> None:
        """Resets the count after progress."""
        self._failures = 0

    def pause(self, lost: ConnectionLost) -> Optional[float]:
        """How long to wait before the next try, in seconds; ``None`` when no retry is left."""
        wait = None
        if isinstance(lost, NotNow):
            wait = lost.wait
            if self._own is None and lost.max_retries is not None:
                self._allowed = lost.max_retries
        if self._failures >= self._allowed:
            return None
        # Jitter: clients that were disconnected together do not reconnect together.
        pause = min(_FIRST_PAUSE * _GROWTH ** min(self._failures, 10), _PAUSE_MAX) * random.uniform(0.5, 1.0)
        self._failures += 1
        return min(wait, _WAIT_MAX) if wait is not None and wait > 0 else pause


def not_now(status: int, headers: Any, said: Optional[Dict[str, Any]]) -> Optional[NotNow]:
    """The refusal in this response, if it is temporary."""
    # A response with a session is the answer of a run; a retry would return the same.
    if status not in _NOT_NOW or headers.get("x-cognitive-session") is not None:
        return None
    error = said.get("error") if said is not None else None
    details = error.get("details") if isinstance(error, dict) else None
    wait_ms = details.get("retry_after_ms") if isinstance(details, dict) else None
    wait = wait_ms / 1000 if isinstance(wait_ms, (int, float)) else _seconds(headers.get("retry-after"))
    return NotNow(f"server temporarily unavailable: HTTP {status}", said, wait)


def _seconds(retry_after: Optional[str]) -> Optional[float]:
    """``Retry-After`` is a number of seconds or a date."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (TypeError, ValueError):
        return None
