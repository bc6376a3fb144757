"""The two products that take almost all the time, written for sparse rows, with their gradients by hand.

`sparse_linear` multiplies CSR rows with a dense weight; `word_log_likelihood` scores the words present in a
document under a softmax over the vocabulary with three matrix products in all (one forward, two backward).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor


@dataclass(frozen=True)
class WordSets:
    """The distinct words of a batch of documents, as coordinates (document, word)."""

    documents: Tensor  # (words,) int64
    words: Tensor  # (words,) int64
    sizes: Tensor  # (documents,) how many distinct words each document has


def word_sets(rows: sparse.csr_matrix, dtype: torch.dtype = torch.float32) -> WordSets:
    """Read which words are present: the columns with a positive value (a document's set, not its counts)."""
    sizes = np.diff(rows.indptr)
    documents = np.repeat(np.arange(len(sizes)), sizes)
    words = rows.indices
    positive = rows.data > 0
    if not positive.all():
        documents, words = documents[positive], words[positive]
        sizes = np.bincount(documents, minlength=len(sizes))
    return WordSets(
        torch.from_numpy(documents),
        torch.from_numpy(words.astype(np.int64)),
        torch.from_numpy(sizes).to(dtype),
    )


def sparse_linear(rows: sparse.csr_matrix, weight: Tensor) -> Tensor:
    """Return rows @ weight, (documents, outputs), with the gradient of the weight."""
    result: Tensor = _SparseLinear.apply(weight, rows)  # type: ignore[no-untyped-call]
    return result


def word_log_likelihood(z: Tensor, embedding: Tensor, bias: Tensor, present: WordSets) -> Tensor:
    """Return log p(x|z) of Eq. (3): log softmax over the vocabulary, summed over the distinct words.

    Args:
        z: latent values (documents, bits).
        embedding: the decoder's E, stored as (vocabulary, bits).
        bias: (vocabulary,).
        present: the words of each document.

    Returns:
        One value a document.
    """
    result: Tensor = _WordLogLikelihood.apply(  # type: ignore[no-untyped-call]
        z, embedding, bias, present.documents, present.words, present.sizes
    )
    return result


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: sparse.csr_matrix) -> Tensor:  # ctx has no public type
        ctx.rows = rows
        return torch.from_numpy(rows @ weight.detach().numpy())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        columns = ctx.rows.T.tocsr()
        return torch.from_numpy(columns @ gradient.contiguous().numpy()), None


class _WordLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, embedding: Tensor, bias: Tensor, documents: Tensor, words: Tensor, sizes: Tensor
    ) -> Tensor:
        logits = torch.addmm(bias, z, embedding.t())
        of_present = torch.zeros_like(sizes).index_add_(0, documents, logits[documents, words])
        largest = logits.amax(dim=1)
        chances = torch.softmax(logits, dim=1)
        # The largest chance is at least 1 / vocabulary, so its logarithm is safe.
        log_total = largest - torch.log(chances.amax(dim=1))
        ctx.save_for_backward(z, embedding, chances, documents, words, sizes)
        return of_present - sizes * log_total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        z, embedding, chances, documents, words, sizes = ctx.saved_tensors
        # In place: the chances are needed no more, and this is the largest array of a step.
        by_logit = chances.mul_((-sizes * gradient)[:, None])
        by_logit[documents, words] += gradient[documents]
        return by_logit @ embedding, by_logit.t() @ z, by_logit.sum(dim=0), None, None, None
