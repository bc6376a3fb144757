"""The registry of methods that learn codes; each is imported on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import snuh.training  # noqa: F401  # settings that must precede the import of PyTorch
from snuh.errors import InputError, check_arguments, missing_extra, suggest

DEFAULT = "snuh-plus"


@dataclass(frozen=True)
class MethodInfo:
    """A row of `snuh methods`, and the location of the class."""

    home: str  # "module:Class"
    summary: str
    paper: str
    year: int
    needs_graph: bool
    needs_torch: bool
    cost: str  # on one core of two


METHODS: Mapping[str, MethodInfo] = {
    "snuh-plus": MethodInfo(
        home="snuh.methods.snuh_plus:SNUHPlus",
        summary="SNUH with a TF-IDF + LSA graph and codes that also explain their neighbours (default)",
        paper="this software, after Ou et al. (ACL 2021)",
        year=2026,
        needs_graph=True,
        needs_torch=True,
        cost="about a minute for 10,000 documents",
    ),
    "snuh": MethodInfo(
        home="snuh.methods.snuh:SNUH",
        summary="Semantics-Neighborhood Unified Hashing, as the paper describes it",
        paper="Ou et al., Integrating Semantics and Neighborhood Information ... (ACL 2021)",
        year=2021,
        needs_graph=True,
        needs_torch=True,
        cost="about half a minute for 10,000 documents",
    ),
    "corrsh": MethodInfo(
        home="snuh.methods.corrsh:CorrSH",
        summary="A word model of bits that depend on each other",
        paper="Zheng et al., Generative Semantic Hashing Enhanced via Boltzmann Machines (ACL 2020)",
        year=2020,
        needs_graph=False,
        needs_torch=True,
        cost="about 2 minutes for 10,000 documents",
    ),
    "ammi": MethodInfo(
        home="snuh.methods.ammi:AMMI",
        summary="A linear encoder whose codes say as much about their document as they can",
        paper="Stratos and Wiseman, ... Adversarially Maximizing Mutual Information (ICML 2020)",
        year=2020,
        needs_graph=False,
        needs_torch=True,
        cost="about 20 seconds for 10,000 documents",
    ),
    "pairrec": MethodInfo(
        home="snuh.methods.pairrec:PairRec",
        summary="A document and its neighbour must both explain the document",
        paper="Hansen et al., Unsupervised Semantic Hashing with Pairwise Reconstruction (SIGIR 2020)",
        year=2020,
        needs_graph=True,
        needs_torch=True,
        cost="about 2 minutes for 10,000 documents",
    ),
    "wish": MethodInfo(
        home="snuh.methods.wish:WISH",
        summary="Each bit switches a topic on; made for few bits",
        paper="Ye et al., Unsupervised Few-Bits Semantic Hashing ... (Findings of EMNLP 2020)",
        year=2020,
        needs_graph=False,
        needs_torch=True,
        cost="about a minute for 10,000 documents",
    ),
    "rbsh": MethodInfo(
        home="snuh.methods.rbsh:RBSH",
        summary="A word model that also ranks documents as a simpler code does",
        paper="Hansen et al., Unsupervised Neural Generative Semantic Hashing (SIGIR 2019)",
        year=2019,
        needs_graph=True,
        needs_torch=True,
        cost="about 4 minutes for 10,000 documents",
    ),
    "bmsh": MethodInfo(
        home="snuh.methods.bmsh:BMSH",
        summary="NASH with a mixture of Bernoulli distributions as its prior",
        paper="Dong et al., Document Hashing with Mixture-Prior Generative Models (EMNLP 2019)",
        year=2019,
        needs_graph=False,
        needs_torch=True,
        cost="about a minute for 10,000 documents",
    ),
    "gmsh": MethodInfo(
        home="snuh.methods.gmsh:GMSH",
        summary="VDSH with a mixture of Gaussians as its prior",
        paper="Dong et al., Document Hashing with Mixture-Prior Generative Models (EMNLP 2019)",
        year=2019,
        needs_graph=False,
        needs_torch=True,
        cost="about a minute for 10,000 documents",
    ),
    "nash": MethodInfo(
        home="snuh.methods.nash:NASH",
        summary="A word model whose latent variables are the bits themselves",
        paper="Shen et al., NASH: Toward End-to-End Neural Architecture ... (ACL 2018)",
        year=2018,
        needs_graph=False,
        needs_torch=True,
        cost="about a minute for 10,000 documents",
    ),
    "nbrreg": MethodInfo(
        home="snuh.methods.nbrreg:NbrReg",
        summary="VDSH whose codes also explain the words of the neighbourhood",
        paper="Chaidaroon et al., Deep Semantic Text Hashing with Weak Supervision (SIGIR 2018)",
        year=2018,
        needs_graph=True,
        needs_torch=True,
        cost="about 2 minutes for 10,000 documents",
    ),
    "vdsh": MethodInfo(
        home="snuh.methods.vdsh:VDSH",
        summary="A variational autoencoder of words, cut at the medians",
        paper="Chaidaroon and Fang, Variational Deep Semantic Hashing (SIGIR 2017)",
        year=2017,
        needs_graph=False,
        needs_torch=True,
        cost="about a minute for 10,000 documents",
    ),
    "itq": MethodInfo(
        home="snuh.methods.itq:ITQ",
        summary="LSA, rotated so that rounding to bits loses least; the yardstick",
        paper="Gong and Lazebnik, Iterative Quantization ... (CVPR 2011)",
        year=2011,
        needs_graph=False,
        needs_torch=False,
        cost="about 2 seconds for 10,000 documents",
    ),
    "sth": MethodInfo(
        home="snuh.methods.sth:STH",
        summary="Bits of a neighbour graph's spectrum, predicted from the words",
        paper="Zhang et al., Self-Taught Hashing for Fast Similarity Search (SIGIR 2010)",
        year=2010,
        needs_graph=True,
        needs_torch=False,
        cost="about 5 seconds for 10,000 documents",
    ),
    "sph": MethodInfo(
        home="snuh.methods.sph:SpH",
        summary="Principal directions, cut by waves",
        paper="Weiss et al., Spectral Hashing (NIPS 2008)",
        year=2008,
        needs_graph=False,
        needs_torch=False,
        cost="about 2 seconds for 10,000 documents",
    ),
    "lsh": MethodInfo(
        home="snuh.methods.lsh:LSH",
        summary="Random directions, nothing learnt",
        paper="Charikar, Similarity Estimation Techniques from Rounding Algorithms (STOC 2002)",
        year=2002,
        needs_graph=False,
        needs_torch=False,
        cost="about a second for 10,000 documents",
    ),
}


def info(name: str) -> MethodInfo:
    """Return the row of a method; InputError suggests the nearest name for an unknown one."""
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise InputError(f'unknown method "{name}"{suggest(name, METHODS)}: known methods are {known}')
    return METHODS[name]


def method_class(name: str) -> type[Any]:  # a HashingEstimator; importing it here would import scikit-learn
    """Import the estimator class of a method; MissingExtraError if PyTorch is not installed."""
    module, class_name = info(name).home.split(":")
    try:
        estimator: type[Any] = getattr(import_module(module), class_name)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return estimator


def make(name: str, *, bits: int, seed: int, parameters: Mapping[str, Any] | None = None) -> Any:
    """Build an estimator by name; InputError suggests the nearest name for an unknown parameter."""
    cls = method_class(name)
    check_arguments(cls, parameters or {}, what=f"{name}'s parameters", exclude=("n_bits", "seed"))
    return cls(n_bits=bits, seed=seed, **(parameters or {}))
