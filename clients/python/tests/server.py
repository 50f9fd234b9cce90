"""A real server for the tests, and a proxy before it that cuts connections after so many bytes."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Iterable, List, Optional

ROOT = Path(__file__).resolve().parents[3]
BINARY = os.environ.get("SERVER_BINARY", str(ROOT / "target/debug/cogn"))


class Server:
    """``cogn serve`` on a free port, with a scripted model. It can be killed and started again."""

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
            raise RuntimeError("the server said no address")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cutter:
    """Passes bytes on, and cuts each answer after so many of them; behind the last cut it passes all."""

    def __init__(self, server: Server, cuts: Iterable[int]) -> None:
        self.server = server
        self.cuts: List[int] = list(cuts)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            cut = self.cuts.pop(0) if self.cuts else None
            threading.Thread(target=self._serve, args=(client, cut), daemon=True).start()

    def _serve(self, client: socket.socket, cut: Optional[int]) -> None:
        try:
            upstream = socket.create_connection(("127.0.0.1", self.server.port))
        except OSError:
            client.close()
            return
        threading.Thread(target=_pump, args=(client, upstream, None), daemon=True).start()
        _pump(upstream, client, cut)

    def close(self) -> None:
        self.listener.close()


def _pump(source: socket.socket, target: socket.socket, left: Optional[int]) -> None:
    try:
        while left is None or left > 0:
            data = source.recv(4096 if left is None else min(left, 4096))
            if not data:
                break
            target.sendall(data)
            left = None if left is None else left - len(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()


def script(text: str, delay_ms: int, chunk_bytes: int = 16) -> str:
    """A model that says ``text``, slowly."""
    return json.dumps([{"reply": text, "delay_ms": delay_ms, "chunk_bytes": chunk_bytes}])
