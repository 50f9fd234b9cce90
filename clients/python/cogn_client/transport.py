"""One HTTP exchange with the server, using only the standard library."""

import http.client
import json
import socket
from typing import Any, Dict, Iterator, Optional
from urllib.parse import urlsplit

from .errors import ConnectionLost, ProtocolError
from .retry import not_now

#: Exceptions of a broken connection.
BROKEN = (OSError, http.client.HTTPException)

_ANSWER_BYTES_MAX = 64 * 1024 * 1024


class Answer:
    """A response whose body has not been read yet. Closing it closes the connection."""

    def __init__(self, connection: socket.socket, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status
        self.headers = response.headers
        self.is_stream = response.headers.get_content_type() == "text/event-stream"
        # The response does not declare its length. This is also the case when the connection broke within the
        # headers: the standard library treats the received ones as complete.
        self._is_open_ended = response.length is None and not response.chunked

    def lines(self) -> Iterator[bytes]:
        try:
            while True:
                line = self._response.readline(_ANSWER_BYTES_MAX)
                if not line:
                    return
                if len(line) == _ANSWER_BYTES_MAX:
                    raise ProtocolError(f"line of more than {_ANSWER_BYTES_MAX} bytes")
                yield line
        except BROKEN as error:
            raise ConnectionLost(str(error) or "connection lost") from error

    def envelope(self) -> Dict[str, Any]:
        """The complete answer; raises for a temporary refusal."""
        try:
            value = json.loads(self._body())
        except ValueError:
            value = None
        said = value if isinstance(value, dict) and isinstance(value.get("ok"), bool) else None
        refusal = not_now(self.status, self.headers, said)
        if refusal is not None:
            raise refusal
        if said is not None:
            return said
        if value is None and self.status < 300 and self._is_open_ended:
            raise ConnectionLost("response closed early")
        raise ProtocolError(f"HTTP {self.status} without an envelope")

    def _body(self) -> bytes:
        try:
            body = self._response.read(_ANSWER_BYTES_MAX + 1)
        except BROKEN as error:
            raise ConnectionLost(str(error) or "connection lost") from error
        finally:
            self.close()
        if len(body) > _ANSWER_BYTES_MAX:
            raise ProtocolError(f"response of more than {_ANSWER_BYTES_MAX} bytes")
        # With a byte limit, the standard library does not report missing bytes.
        if self._response.length:
            raise ConnectionLost("response closed early")
        return body

    def close(self) -> None:
        """Closes the connection, also for a reader in another thread that waits for data."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._response.close()
        self._connection.close()


class Transport:
    """Address and credentials of the server."""

    def __init__(self, base_url: str, key: Optional[str], timeout: float) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"invalid server URL {base_url!r}")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._key = key
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"Transport({self._host!r}, {self._port!r})"

    def post(self, path: str, body: Dict[str, Any], headers: Dict[str, str], silence: float) -> Answer:
        """``silence`` is the socket timeout once the server is connected, in seconds."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout)
        sent = {"content-type": "application/json", **headers}
        if self._key is not None:
            sent["authorization"] = f"Bearer {self._key}"
        try:
            connection.connect()
            # A response that ends with its connection detaches the socket from it, so a reference is stored here.
            line = connection.sock
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.settimeout(silence)
            connection.request("POST", self._prefix + path, json.dumps(body), sent)
            return Answer(line, connection.getresponse())
        except BROKEN as error:
            connection.close()
            raise ConnectionLost(str(error) or "server unreachable") from error
        except BaseException:
            connection.close()
            raise
