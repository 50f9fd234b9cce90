"""A real server for the tests, and a proxy before it that injects faults."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, TextIO, Tuple, Union

ROOT = Path(__file__).resolve().parents[3]
BINARY = os.environ.get("SERVER_BINARY", str(ROOT / "target/debug/cogn"))


class Server:
    """``cogn serve`` on a free port, with a scripted model. It can be killed and restarted."""

    def __init__(self, script: str, port: int = 0) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.script = self.folder / "script.yaml"
        self.script.write_text(script)
        self.port = port
        self.process: Optional[subprocess.Popen] = None
        self.start()

    def start(self) -> None:
        command = [BINARY, "serve", "--listen", f"127.0.0.1:{self.port}"]
        command += ["--modules", str(ROOT / "examples/modules"), "--backend", f"scripted:{self.script}"]
        command += ["--journal", str(self.folder / "journal.db")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                break
        else:
            raise RuntimeError("the server printed no address")
        threading.Thread(target=_drain, args=(self.process.stdout,), daemon=True).start()

    def runs(self) -> int:
        """How many runs it has recorded."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/runs?limit=200") as answer:
            return len(json.load(answer)["data"]["runs"])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _drain(said: TextIO) -> None:
    with said:
        said.read()


@dataclass
class Hold:
    """Forwards this many bytes, then stalls without closing the connection."""

    bytes: int


class Say:
    """Responds in place of the server, with a pause after each piece, and closes the connection."""

    def __init__(self, *pieces: bytes, pause: float = 0.0) -> None:
        self.pieces = pieces
        self.pause = pause


#: A number is how many bytes of the response are forwarded before the connection is cut.
Fault = Union[int, Hold, Say]


class Proxy:
    """Applies the next fault of the list to each connection; after the last one it forwards everything."""

    def __init__(self, server: Optional[Server], faults: Iterable[Fault]) -> None:
        self.server = server
        self.faults: List[Fault] = list(faults)
        #: The headers and the body of each received request.
        self.requests: List[Tuple[Dict[str, str], Any]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            request = self._read(client)
            fault = self.faults.pop(0) if self.faults else None
            if isinstance(fault, Say):
                for piece in fault.pieces:
                    client.sendall(piece)
                    time.sleep(fault.pause)
                _close(client)
                return
            if self.server is None:
                raise OSError("no server")
            upstream = socket.create_connection(("127.0.0.1", self.server.port))
            upstream.sendall(request)
        except OSError:
            _close(client)
            return
        if isinstance(fault, Hold):
            _pump(upstream, client, fault.bytes)
            # Until the client closes the connection.
            _pump(client, None, None)
        else:
            threading.Thread(target=_pump, args=(client, upstream, None), daemon=True).start()
            _pump(upstream, client, fault)
        _close(upstream)
        _close(client)

    def _read(self, client: socket.socket) -> bytes:
        """The request as received."""
        with client.makefile("rb") as lines:
            head = [lines.readline()]
            while head[-1].strip():
                head.append(lines.readline())
            headers = dict(line.decode().strip().lower().split(": ", 1) for line in head[1:-1])
            body = lines.read(int(headers.get("content-length", 0)))
        self.requests.append((headers, json.loads(body)))
        return b"".join(head) + body


def _close(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()


def _pump(source: socket.socket, target: Optional[socket.socket], left: Optional[int]) -> None:
    try:
        while left is None or left > 0:
            data = source.recv(4096 if left is None else min(left, 4096))
            if not data:
                break
            if target is not None:
                target.sendall(data)
            left = None if left is None else left - len(data)
    except OSError:
        pass


def answer(status: str, body: Union[str, dict], headers: str = "") -> Say:
    """A complete response: an envelope, or the page of a proxy."""
    kind, text = ("text/html", body) if isinstance(body, str) else ("application/json", json.dumps(body))
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(text.encode())}\r\nconnection: close\r\n"
    return Say(f"{head}{headers}\r\n{text}".encode())


def streamed(*events: Tuple[str, dict]) -> Say:
    """A stream that is cut after these events."""
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    return Say((head + "".join(f"event: {kind}\ndata: {json.dumps(body)}\n\n" for kind, body in events)).encode())


def script(text: str, delay_ms: int, chunk_bytes: int = 16) -> str:
    """A scripted model that sends ``text`` slowly."""
    return json.dumps([{"reply": text, "delay_ms": delay_ms, "chunk_bytes": chunk_bytes}])
