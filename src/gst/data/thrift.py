"""Structs in Thrift's compact protocol, which holds the metadata of parquet files; any bytes are safe to read."""

import struct
from typing import Any

Struct = dict[int, Any]  # values by field number
MAX_VALUES = 2_000_000  # in one struct, nested ones included
_MAX_DEPTH = 8
_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _TEXT, _LISTS, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12


class Reader:
    """Reads one struct from the start of ``content``; damaged bytes are a ``ValueError`` or an ``IndexError``."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0
        self.values = 0  # read so far

    def struct(self, depth: int = 0) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 0xF
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self.values += 1
        if self.values > MAX_VALUES or depth > _MAX_DEPTH:
            raise ValueError("its metadata is too large or too deeply nested")
        if kind in _INTEGERS:
            return self._signed()
        if kind == _TEXT:
            return self._bytes(self._number())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in _LISTS:
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._number()
            return [self._value(head & 0xF, depth + 1) for _ in range(count)]
        if kind == _DOUBLE:
            return struct.unpack("<d", self._bytes(8))[0]
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        raise ValueError(f"its metadata has a value of unknown kind {kind}")

    def _byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def _bytes(self, count: int) -> bytes:
        self.position += count
        if self.position > len(self.content):
            raise ValueError("its metadata is truncated")
        return self.content[self.position - count : self.position]

    def _number(self) -> int:
        value = shift = 0
        while (byte := self._byte()) >= 0x80 and shift < 63:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _signed(self) -> int:
        value = self._number()
        return (value >> 1) ^ -(value & 1)
