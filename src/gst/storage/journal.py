"""A write-ahead journal: what has been acknowledged survives a killed process and a power cut.

One line per change: its checksum, then JSON with its number. A change is appended and synced before it is made, so an
acknowledged one is always on disk. A last line without its end was never acknowledged, and is cut off.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gst.base.errors import DamagedError, InputError
from gst.base.regular_files import require_regular
from gst.base.user_paths import check_file
from gst.storage.files import digest, write_bytes, write_errors
from gst.storage.lock import take

FORMAT = 1


class UnwrittenError(InputError):
    """A change could not be written to disk, and was not made."""


class Journal:
    """The changes of an engine since a state that ``identity`` names.

    Args:
        path: created if missing; of another identity it is refused.
        identity: a hash of what the changes start from.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        check_file(path)
        if not path.exists():
            write_bytes(path, _line({"what": "journal", "format": FORMAT, "identity": identity}))
        require_regular(path)
        with write_errors(path):
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0))
        try:
            if not take(self._handle):
                raise InputError(f"{path} is in use by another process: only one engine may write it")
            self._end, self.changes = self._read(identity)
            os.ftruncate(self._handle, self._end)
        except BaseException:
            os.close(self._handle)
            raise

    def _read(self, identity: str) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
        """Where the last whole line ends, and every change with its number."""
        content = self.path.read_bytes()
        entries, end = [], 0
        for start, line in _lines(content):
            entry = _parsed(line)
            if entry is None:
                if start + len(line) == len(content):
                    break  # torn by a kill, never acknowledged
                raise DamagedError(f"{self.path} is damaged at byte {start}: a line does not have its checksum")
            entries.append(entry)
            end = start + len(line)
        if not entries or entries[0].get("what") != "journal" or entries[0].get("format") != FORMAT:
            raise InputError(f"{self.path} is not a journal of format {FORMAT}: choose another file")
        if entries[0].get("identity") != identity:
            raise InputError(f"{self.path} belongs to another run: move it away, or choose another file")
        return end, [(int(entry["version"]), entry["change"]) for entry in entries[1:]]

    def append(self, version: int, change: dict[str, Any]) -> None:
        """Writes and syncs a change; after an error the journal is as it was before."""
        line = _line({"version": version, "change": change})
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, self._end)
            raise UnwrittenError(f"cannot write {self.path}: {error.strerror or error}") from None
        self._end += len(line)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _line(entry: dict[str, Any]) -> bytes:
    text = json.dumps(entry, separators=(",", ":")).encode()
    return digest(text).encode() + b" " + text + b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The entry of a line; None if it is not whole."""
    seal, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or digest(text).encode() != seal:
        return None
    entry = json.loads(text)
    return entry if isinstance(entry, dict) else None


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    while start < len(content):
        end = content.find(b"\n", start) + 1 or len(content)
        yield start, content[start:end]
        start = end
