"""The figures that the paper prints in Table 1: precision@100, the baselines as their papers report it."""

from __future__ import annotations

from collections.abc import Mapping

BITS = (16, 32, 64, 128)

# method -> corpus -> precision at 16, 32, 64 and 128 bits
TABLE1: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "sph": {
        "reuters": (0.6340, 0.6513, 0.6290, 0.6045),
        "tmc": (0.6055, 0.6281, 0.6143, 0.5891),
        "ng20": (0.3200, 0.3709, 0.3196, 0.2716),
    },
    "sth": {
        "reuters": (0.7351, 0.7554, 0.7350, 0.6986),
        "tmc": (0.3947, 0.4105, 0.4181, 0.4123),
        "ng20": (0.5237, 0.5860, 0.5806, 0.5443),
    },
    "vdsh": {
        "reuters": (0.7165, 0.7753, 0.7456, 0.7318),
        "tmc": (0.6853, 0.7108, 0.4410, 0.5847),
        "ng20": (0.3904, 0.4327, 0.1731, 0.0522),
    },
    "nbrreg": {
        "ng20": (0.4120, 0.4644, 0.4768, 0.4893),
    },
    "nash": {
        "reuters": (0.7624, 0.7993, 0.7812, 0.7559),
        "tmc": (0.6573, 0.6921, 0.6548, 0.5998),
        "ng20": (0.5108, 0.5671, 0.5071, 0.4664),
    },
    "gmsh": {
        "reuters": (0.7672, 0.8183, 0.8212, 0.7846),
        "tmc": (0.6736, 0.7024, 0.7086, 0.7237),
        "ng20": (0.4855, 0.5381, 0.5869, 0.5583),
    },
    "ammi": {
        "reuters": (0.8173, 0.8446, 0.8506, 0.8602),
        "tmc": (0.7096, 0.7416, 0.7522, 0.7627),
        "ng20": (0.5518, 0.5956, 0.6398, 0.6618),
    },
    "corrsh": {
        "reuters": (0.8212, 0.8420, 0.8465, 0.8482),
        "tmc": (0.7243, 0.7534, 0.7606, 0.7632),
        "ng20": (0.5839, 0.6183, 0.6279, 0.6359),
    },
    "snuh": {
        "reuters": (0.8320, 0.8466, 0.8560, 0.8624),
        "tmc": (0.7251, 0.7543, 0.7658, 0.7726),
        "ng20": (0.5775, 0.6387, 0.6646, 0.6731),
    },
}


def best_printed(corpus: str, bits: int) -> float | None:
    """Return the best figure of a column, None where the paper has none."""
    figures = (printed(corpus, method, bits) for method in TABLE1)
    return max((value for value in figures if value is not None), default=None)


def printed(corpus: str, method: str, bits: int) -> float | None:
    """Return the paper's figure, None where it has none; NAME.tfidf counts as the corpus NAME."""
    figures = TABLE1.get(method, {}).get(corpus.removesuffix(".tfidf"))
    return None if figures is None or bits not in BITS else figures[BITS.index(bits)]
