"""Codes in the plane: those that differ in few bits lie near each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.errors import MissingExtraError

FEWEST_TO_SPREAD = 10  # below that, two axes say all there is to say
PERPLEXITY, COMPONENTS = 30.0, 32


def place_codes(codes: NDArray[np.uint8], *, seed: int = 0) -> NDArray[np.float64]:
    """Return a place for each code (documents, 2), from -1 to 1; t-SNE of the bits, the same every time."""
    signs = unpack(codes).astype(np.float64) * 2.0 - 1.0  # (documents, bits)
    axes = _principal(signs)
    if len(codes) >= FEWEST_TO_SPREAD and len(np.unique(codes, axis=0)) >= FEWEST_TO_SPREAD:
        axes = _spread(axes, seed)
    plane = np.zeros((len(codes), 2))
    plane[:, : min(2, axes.shape[1])] = axes[:, :2]
    plane -= plane.mean(axis=0) if len(plane) else 0.0
    return plane / (np.abs(plane).max(initial=0.0) or 1.0)


def _principal(signs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coordinates along the axes with the largest variance."""
    if not len(signs):
        return signs
    centred = signs - signs.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes: NDArray[np.float64] = centred @ vectors[:, np.argsort(-values)[:COMPONENTS]]
    return axes


def _spread(axes: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    try:
        from openTSNE import TSNE
    except ModuleNotFoundError:
        raise MissingExtraError('the map needs openTSNE: pip install "snuh[serve]"') from None
    perplexity = min(PERPLEXITY, (len(axes) - 1) / 3.0)
    method = TSNE(perplexity=perplexity, initialization="pca", random_state=seed, n_jobs=1)
    return np.asarray(method.fit(axes))
