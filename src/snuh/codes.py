"""Packed binary codes: one row per document, eight bits per byte, most significant bit first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snuh.errors import InputError

MIN_BITS, MAX_BITS = 8, 512
BLOCK_PAIRS = 1 << 21  # (query, code) pairs in memory at once: some tens of megabytes


def check_bits(bits: int) -> int:
    """Return a valid code length; InputError for any other value."""
    is_integer = isinstance(bits, int | np.integer) and not isinstance(bits, bool)
    if not is_integer or bits % 8 or not MIN_BITS <= bits <= MAX_BITS:
        raise InputError(f"bits must be a multiple of 8 from {MIN_BITS} to {MAX_BITS}, got {bits!r}")
    return int(bits)


def check_codes(codes: ArrayLike, *, bits: int | None = None) -> NDArray[np.uint8]:
    """Return packed codes as a contiguous uint8 array (documents, bytes); InputError for other arrays.

    Args:
        codes: any array-like.
        bits: the expected code length; any by default.
    """
    array = np.asarray(codes)
    if array.dtype != np.uint8 or array.ndim != 2:
        got = f"{array.dtype} of shape {array.shape}"
        raise InputError(
            f"codes must be uint8 of shape (documents, bits / 8), got {got}: pack bits with snuh.codes.pack"
        )
    check_bits(array.shape[1] * 8)
    if bits is not None and array.shape[1] * 8 != bits:
        raise InputError(
            f"the codes must have {bits} bits, got {array.shape[1] * 8}: encode with the same model"
        )
    return np.ascontiguousarray(array)


def pack(bits: ArrayLike) -> NDArray[np.uint8]:
    """Pack a boolean or 0/1 array (documents, bits) into codes (documents, bits / 8)."""
    array = np.asarray(bits)
    if array.ndim != 2:
        raise InputError(f"bits must be an array of shape (documents, bits), got shape {array.shape}")
    check_bits(array.shape[1])
    ones = array.astype(bool)
    if not np.array_equal(ones, array):
        raise InputError("bits must be 0 or 1, got other values: apply a threshold to real values first")
    return np.packbits(ones, axis=1)


def unpack(codes: ArrayLike, bits: int | None = None) -> NDArray[np.bool_]:
    """Unpack codes (documents, bytes) into booleans (documents, bits); check the code length if given."""
    packed = check_codes(codes)
    if bits is not None and check_bits(bits) != packed.shape[1] * 8:
        raise InputError(f"expected {bits}-bit codes, got {packed.shape[1] * 8}-bit codes")
    return np.unpackbits(packed, axis=1).view(np.bool_)


def hamming(queries: ArrayLike, codes: ArrayLike) -> NDArray[np.uint16]:
    """Return the Hamming distances (queries, codes), the numbers of differing bits."""
    left, right = check_codes(queries), check_codes(codes)
    if left.shape[1] != right.shape[1]:
        raise InputError(
            f"the queries have {left.shape[1] * 8} bits and the codes {right.shape[1] * 8}: "
            "encode both with the same model"
        )
    # One column of words at a time keeps temporary arrays at (queries, codes).
    left_words, right_words = as_words(left), as_words(right)
    distances = np.zeros((len(left), len(right)), dtype=np.uint16)
    for column in range(left_words.shape[1]):
        differing = np.bitwise_xor.outer(left_words[:, column], right_words[:, column])
        distances += np.bitwise_count(differing)
    return distances


def hamming_pairs(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the Hamming distance of each code in `left` to the code in the same row of `right`."""
    distances: NDArray[np.int64] = np.bitwise_count(left ^ right).sum(axis=1, dtype=np.int64)
    return distances


def hamming_blocks(queries: ArrayLike, codes: ArrayLike) -> Iterator[tuple[slice, NDArray[np.uint16]]]:
    """Yield (rows of queries, their distances to all codes) in blocks of bounded size."""
    left, right = check_codes(queries), check_codes(codes)
    step = max(1, BLOCK_PAIRS // max(1, len(right)))
    for start in range(0, len(left), step):
        block = slice(start, min(start + step, len(left)))
        yield block, hamming(left[block], right)


def count_distances(distances: NDArray[np.uint16], *, bits: int) -> NDArray[np.int64]:
    """Count the codes at distance 0, 1, ... bits in each row of distances, as (rows, bits + 1)."""
    width = bits + 1
    keys = distances + (np.arange(len(distances)) * width)[:, None]
    return np.bincount(keys.ravel(), minlength=len(distances) * width).reshape(-1, width)


def as_words(codes: NDArray[np.uint8]) -> NDArray[np.unsignedinteger[Any]]:
    """View contiguous codes (documents, bytes) as the widest unsigned integers that divide a row."""
    size = next(size for size in (8, 4, 2, 1) if codes.shape[1] % size == 0)
    return codes.view(f"u{size}")


def code_column(codes: NDArray[np.uint8]) -> Any:  # pyarrow has no type stubs
    """Return packed codes as an Arrow column of fixed-size binaries."""
    import pyarrow as pa

    width = pa.binary(codes.shape[1])
    return pa.FixedSizeBinaryArray.from_buffers(width, len(codes), [None, pa.py_buffer(codes.tobytes())])
