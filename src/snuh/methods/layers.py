"""The two products that take almost all the time, written for sparse rows, with their gradients by hand.

`sparse_linear` multiplies CSR rows with a dense weight; `word_log_likelihood` scores the words present in a
document under a softmax over the vocabulary with three matrix products in all (one forward, two backward).

Allocating an array of some megabytes costs as much as filling it, so nothing large is allocated twice:
gradients are added in place to a `parameter.grad` that is there already (keep it with
`zero_grad(set_to_none=False)`), and the decoder works in a scratch array of its caller. Both layers allow one
backward pass for each forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import prange
from scipy import sparse
from torch import Tensor

from snuh.compiling import compiled


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


def word_log_likelihood(
    z: Tensor, embedding: Tensor, bias: Tensor, present: WordSets, *, scratch: Tensor | None = None
) -> Tensor:
    """Return log p(x|z) of Eq. (3): log softmax over the vocabulary, summed over the distinct words.

    Args:
        z: latent values (documents, bits).
        embedding: the decoder's E, stored as (vocabulary, bits).
        bias: (vocabulary,).
        present: the words of each document.
        scratch: (documents or more, vocabulary), overwritten, and in use until the backward pass.

    Returns:
        One value a document.
    """
    if scratch is None:
        scratch = torch.empty((len(z), len(embedding)), dtype=z.dtype)
    result: Tensor = _WordLogLikelihood.apply(  # type: ignore[no-untyped-call]
        z, embedding, bias, present.documents, present.words, present.sizes, scratch[: len(z)]
    )
    return result


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: sparse.csr_matrix) -> Tensor:  # ctx has no public type
        ctx.weight, ctx.rows = weight, rows
        product = np.empty((rows.shape[0], weight.shape[1]), dtype=rows.dtype)
        _multiply(rows.indptr, rows.indices, rows.data, weight.detach().numpy(), product)
        return torch.from_numpy(product)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None]:
        columns = ctx.rows.T.tocsr()
        there = ctx.weight.grad
        total = torch.zeros_like(ctx.weight) if there is None else there
        _add_product(
            columns.indptr, columns.indices, columns.data, gradient.contiguous().numpy(), total.numpy()
        )
        return (total if there is None else None), None


class _WordLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        embedding: Tensor,
        bias: Tensor,
        documents: Tensor,
        words: Tensor,
        sizes: Tensor,
        scratch: Tensor,
    ) -> Tensor:
        logits = torch.addmm(bias, z, embedding.t(), out=scratch)
        of_present = torch.zeros_like(sizes).index_add_(0, documents, logits[documents, words])
        largest = logits.amax(dim=1)
        shares = logits.sub_(largest[:, None]).exp_()
        total = shares.sum(dim=1)  # at least 1, the share of the largest
        ctx.z, ctx.embedding, ctx.shares, ctx.total = z, embedding, shares, total
        ctx.documents, ctx.words, ctx.sizes = documents, words, sizes
        return of_present - sizes * (largest + torch.log(total))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_logit = ctx.shares.mul_((-ctx.sizes * gradient / ctx.total)[:, None])
        by_logit[ctx.documents, ctx.words] += gradient[ctx.documents]
        by_embedding = None
        if ctx.embedding.grad is None:
            by_embedding = by_logit.t() @ ctx.z
        else:
            ctx.embedding.grad.addmm_(by_logit.t(), ctx.z)
        return by_logit @ ctx.embedding, by_embedding, by_logit.sum(dim=0), None, None, None, None


@compiled(parallel=True)
def _multiply(indptr, indices, data, weight, product):  # type: ignore[no-untyped-def]
    """Write rows @ weight into product."""
    for r in prange(product.shape[0]):
        line = product[r]
        line[:] = 0
        for p in range(indptr[r], indptr[r + 1]):
            factor = data[p]
            row = weight[indices[p]]
            for c in range(line.shape[0]):
                line[c] += factor * row[c]


@compiled(parallel=True)
def _add_product(indptr, indices, data, right, total):  # type: ignore[no-untyped-def]
    """Add rows @ right to total, leaving alone what no row reaches."""
    for r in prange(total.shape[0]):
        line = total[r]
        for p in range(indptr[r], indptr[r + 1]):
            factor = data[p]
            row = right[indices[p]]
            for c in range(line.shape[0]):
                line[c] += factor * row[c]
