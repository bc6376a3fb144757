"""Codes as PostgreSQL writes bits: "0110...", the first bit first, as `snuh.codes.pack` packs them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from snuh.collection.rows import CodeRows


def to_bits(code: bytes) -> str:
    """Return the bits of a code."""
    return f"{int.from_bytes(code, 'big'):0{8 * len(code)}b}"


def to_rows(rows: Sequence[tuple[int, str]], *, bits: int) -> CodeRows:
    """Return seqs and bits as arrays."""
    seqs: NDArray[np.int64] = np.fromiter((seq for seq, _ in rows), dtype=np.int64, count=len(rows))
    digits = np.frombuffer("".join(code for _, code in rows).encode(), dtype=np.uint8)
    return CodeRows(seqs, np.packbits(digits.reshape(len(rows), bits) == ord("1"), axis=1))
