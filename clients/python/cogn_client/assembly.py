"""Assembles the data of a stream from its chunks; the value so far is available at any time.

Cost is linear in the bytes received: the text of the growing field is joined only when the data is read.
"""

import hashlib
from typing import Any, Dict, List, Optional

from .field import get, put, steps_of


class Assembly:
    """Folds the numbered chunks of one stream."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Discards everything: the stream starts over."""
        self._root: Dict[str, Any] = {}
        self.last_seq = 0
        self.last_checkpoint: Optional[Dict[str, Any]] = None
        self._field: Optional[str] = None
        self._pieces: List[str] = []
        self._bytes = 0
        self._hash = hashlib.sha256()

    @property
    def data(self) -> Any:
        """The data so far; ``None`` before the first chunk."""
        self._join()
        return self._root.get("data")

    def add(self, chunk: Dict[str, Any]) -> bool:
        """Adds one chunk. ``False`` when it does not continue the previous ones."""
        if chunk["seq"] != self.last_seq + 1:
            return False
        field = chunk.get("field", "data")
        if chunk["type"] == "snapshot":
            self._join()
            self._field = None
            put(self._root, steps_of(field), chunk["data"])
        elif not self._grow(field, chunk["delta"], chunk.get("checkpoint")):
            return False
        self.last_seq = chunk["seq"]
        self.last_checkpoint = chunk.get("checkpoint")
        return True

    def _grow(self, field: str, delta: str, checkpoint: Optional[Dict[str, Any]]) -> bool:
        if field != self._field:
            self._join()
            before = get(self._root, steps_of(field))
            before = before if isinstance(before, str) else ""
            self._field = field
            self._pieces = [before]
            self._bytes = len(before.encode())
            self._hash = hashlib.sha256(before.encode())
        written = delta.encode()
        self._pieces.append(delta)
        self._bytes += len(written)
        self._hash.update(written)
        if checkpoint is None:
            return True
        # Length and hash must match the server's checkpoint.
        return self._bytes == checkpoint["offset"] and self._hash.hexdigest()[:6] == checkpoint["hash"]

    def _join(self) -> None:
        if self._field is not None and len(self._pieces) > 1:
            text = "".join(self._pieces)
            self._pieces = [text]
            put(self._root, steps_of(self._field), text)
