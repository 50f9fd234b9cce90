"""One HTTP exchange with the server, by the standard library alone."""

import http.client
import json
import socket
from typing import Any, Dict, Iterator, Optional
from urllib.parse import urlsplit

from .errors import ConnectionLost, ProtocolError

#: What a broken connection looks like, however it broke.
BROKEN = (OSError, http.client.HTTPException)

_ANSWER_BYTES_MAX = 64 * 1024 * 1024


class Answer:
    """A response whose body has not been read yet. Closing it hangs up."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status
        self.headers = response.headers
        self.is_stream = response.headers.get_content_type() == "text/event-stream"

    def lines(self) -> Iterator[bytes]:
        try:
            while True:
                line = self._response.readline()
                if not line:
                    return
                yield line
        except BROKEN as error:
            raise ConnectionLost(str(error) or "the connection broke") from error

    def json(self) -> Dict[str, Any]:
        try:
            body = self._response.read(_ANSWER_BYTES_MAX)
        except BROKEN as error:
            raise ConnectionLost(str(error) or "the connection broke") from error
        finally:
            self.close()
        try:
            value = json.loads(body)
        except ValueError:
            raise ProtocolError(f"HTTP {self.status} without JSON") from None
        if not isinstance(value, dict):
            raise ProtocolError(f"HTTP {self.status} without an envelope")
        return value

    def close(self) -> None:
        self._connection.close()


class Transport:
    """Where the server is, and how to greet it."""

    def __init__(self, base_url: str, key: Optional[str], timeout: float) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{base_url!r} is no address of a server")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._key = key
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"Transport({self._host!r}, {self._port!r})"

    def post(self, path: str, body: Dict[str, Any], headers: Dict[str, str]) -> Answer:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout)
        sent = {"content-type": "application/json", **headers}
        if self._key is not None:
            sent["authorization"] = f"Bearer {self._key}"
        try:
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.request("POST", self._prefix + path, json.dumps(body), sent)
            return Answer(connection, connection.getresponse())
        except BROKEN as error:
            connection.close()
            raise ConnectionLost(str(error) or "the server cannot be reached") from error
