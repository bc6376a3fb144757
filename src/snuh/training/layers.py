"""The two products that take almost all the time, written for sparse rows, with their gradients by hand.

`sparse_linear` multiplies CSR rows with a dense weight; `word_log_likelihood` scores the words present in a
document under a softmax over the vocabulary with three matrix products in all (one forward, two backward).

Allocating an array of some megabytes costs as much as filling it, so a caller that trains lends both layers
arrays that serve every step: gradients are written into a lent array, which becomes `parameter.grad`, and the
decoder's logits into another. Both layers allow one backward pass for each forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numba import prange
from scipy import sparse
from torch import Tensor

from snuh._numba import njit
from snuh.training.sparse_ops import SparseRows, explain_words, transposed


@dataclass(frozen=True)
class WordSets:
    """The distinct words of a batch of documents, in the layout of a CSR matrix."""

    first: npt.NDArray[np.integer]  # (documents + 1,) where each document's words start
    words: npt.NDArray[np.integer]  # (words,)
    sizes: Tensor  # (documents,) how many distinct words each document has


def word_sets(
    rows: sparse.csr_matrix | SparseRows, dtype: torch.dtype = torch.float32, *, documents: int | None = None
) -> WordSets:
    """Read which words are present: the columns with a positive value (a document's set, not its counts).

    Args:
        rows: of documents.
        dtype: of the sizes.
        documents: so many rows, from the first on; all if not given.
    """
    first = rows.indptr if documents is None else rows.indptr[: documents + 1]
    words = rows.indices[: first[-1]]
    positive = rows.data[: first[-1]] > 0
    if not positive.all():
        first = np.concatenate([[0], positive.cumsum()])[first]
        words = words[positive]
    return WordSets(first, words, torch.from_numpy(np.diff(first)).to(dtype))


def sparse_linear(
    rows: sparse.csr_matrix | SparseRows,
    weight: Tensor,
    *,
    gradient: Tensor | None = None,
    scale: Tensor | None = None,
) -> Tensor:
    """Return (rows * scale) @ weight, (documents, outputs).

    Args:
        rows: (documents, inputs).
        weight: (inputs, outputs), a parameter.
        gradient: an array like the weight, lent to hold its gradient.
        scale: (inputs,), a factor for each column, a parameter too; none: 1.
    """
    result: Tensor = _SparseLinear.apply(weight, scale, rows, gradient)  # type: ignore[no-untyped-call]
    return result


@dataclass(frozen=True)
class DecoderArrays:
    """What a caller lends to `word_log_likelihood`."""

    logits: Tensor  # (documents or more, vocabulary), in use until the backward pass
    gradient: Tensor  # like the embedding


def word_log_likelihood(
    z: Tensor, embedding: Tensor, bias: Tensor, present: WordSets, *, lent: DecoderArrays | None = None
) -> Tensor:
    """Return log p(x|z) of Eq. (3): log softmax over the vocabulary, summed over the distinct words.

    Args:
        z: latent values (documents, bits).
        embedding: the decoder's E, stored as (vocabulary, bits).
        bias: (vocabulary,).
        present: the words of each document.
        lent: arrays to work in.

    Returns:
        One value a document.
    """
    if lent is None:
        lent = DecoderArrays(
            torch.empty((len(z), len(embedding)), dtype=z.dtype), torch.empty_like(embedding)
        )
    result: Tensor = _WordLogLikelihood.apply(z, embedding, bias, present, lent)  # type: ignore[no-untyped-call]
    return result


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        scale: Tensor | None,
        rows: sparse.csr_matrix | SparseRows,
        lent: Tensor | None,
    ) -> Tensor:
        ctx.weight, ctx.rows, ctx.lent, ctx.scaled = weight, rows, lent, rows
        if scale is not None:
            data = rows.data * scale.detach().numpy()[rows.indices]
            ctx.scaled = SparseRows(rows.indptr, rows.indices, data, rows.shape)
        product = np.empty((rows.shape[0], weight.shape[1]), dtype=rows.data.dtype)
        _multiply(rows.indptr, rows.indices, ctx.scaled.data, weight.detach().numpy(), product)
        return torch.from_numpy(product)

    @staticmethod
    def backward(ctx: Any, by_product: Tensor) -> tuple[Tensor | None, ...]:
        rows, by_rows = ctx.rows, by_product.contiguous().numpy()
        columns = transposed(ctx.scaled)
        gradient = _gradient_array(ctx.weight, ctx.lent)
        _multiply(columns.indptr, columns.indices, columns.data, by_rows, gradient.numpy())
        by_scale = None
        if ctx.needs_input_grad[1]:
            sums = np.zeros(rows.shape[1], dtype=rows.data.dtype)
            weight = ctx.weight.detach().numpy()
            _sum_by_column(rows.indptr, rows.indices, rows.data, weight, by_rows, sums)
            by_scale = torch.from_numpy(sums)
        return _hand_over(gradient, ctx.weight), by_scale, None, None


class _WordLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, embedding: Tensor, bias: Tensor, present: WordSets, lent: DecoderArrays
    ) -> Tensor:
        logits = torch.mm(z, embedding.t(), out=lent.logits[: len(z)])
        of_present, largest, total = (torch.empty_like(present.sizes) for _ in range(3))
        sums = (of_present.numpy(), largest.numpy(), total.numpy())
        explain_words(logits.numpy(), bias.detach().numpy(), present.first, present.words, *sums)
        ctx.z, ctx.embedding, ctx.present, ctx.gradient = z, embedding, present, lent.gradient
        ctx.by_logits, ctx.total = logits, total
        return of_present - present.sizes * (largest + torch.log(total))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Leave the factor of each document to the small side of the products.

        With g the gradient, n the words and S the total of a document, and e what the logits became, the
        gradient by its logits is g (present - n e / S) = -(g n / S) (e - present S / n).
        """
        by_logits = ctx.by_logits
        factor = -gradient * ctx.present.sizes / ctx.total
        by_embedding = _gradient_array(ctx.embedding, ctx.gradient)
        torch.mm(by_logits.t(), factor[:, None] * ctx.z, out=by_embedding)
        return (
            factor[:, None] * (by_logits @ ctx.embedding),
            _hand_over(by_embedding, ctx.embedding),
            torch.mv(by_logits.t(), factor),
            None,
            None,
        )


def _gradient_array(parameter: Tensor, lent: Tensor | None) -> Tensor:
    """Return the lent array, or a new one where it is in use as the gradient of an earlier pass."""
    is_in_use = parameter.is_leaf and parameter.grad is not None
    return torch.empty_like(parameter) if lent is None or is_in_use else lent


def _hand_over(gradient: Tensor, parameter: Tensor) -> Tensor | None:
    """Make it the parameter's gradient itself: given back to autograd, a lent array would be copied."""
    if not parameter.is_leaf or parameter.grad is not None:
        return gradient
    parameter.grad = gradient
    return None


@njit(parallel=True)
def _multiply(indptr, indices, data, weight, product):  # type: ignore[no-untyped-def]
    """Write rows @ weight into product; four values at a time, so that a line is seldom read and written."""
    for r in prange(product.shape[0]):
        line = product[r]
        line[:] = 0
        end = indptr[r + 1]
        fours = end - (end - indptr[r]) % 4
        for p in range(indptr[r], fours, 4):
            f0, f1, f2, f3 = data[p], data[p + 1], data[p + 2], data[p + 3]
            row0, row1 = weight[indices[p]], weight[indices[p + 1]]
            row2, row3 = weight[indices[p + 2]], weight[indices[p + 3]]
            for c in range(line.shape[0]):
                line[c] += (f0 * row0[c] + f1 * row1[c]) + (f2 * row2[c] + f3 * row3[c])
        for p in range(fours, end):
            factor = data[p]
            row = weight[indices[p]]
            for c in range(line.shape[0]):
                line[c] += factor * row[c]


@njit()
def _sum_by_column(indptr, indices, data, weight, by_rows, sums):  # type: ignore[no-untyped-def]
    """Sum x (w . g) of every value x, with w its column's weights and g its row's gradient."""
    for r in range(by_rows.shape[0]):
        for p in range(indptr[r], indptr[r + 1]):
            sums[indices[p]] += data[p] * np.dot(weight[indices[p]], by_rows[r])


# The decoder of all word models: a softmax over the vocabulary, linear in the code.


class WordDecoder:
    """log p(x|z) = sum over the distinct words w of x of log softmax(E z + b)_w.

    It starts with each word as likely as it is in the corpus, whatever the code: the bits then have to
    explain only what is particular about a document, from the first step on.

    Args:
        X: the rows whose words are counted.
        dims: the length of z.
        documents: the most that are explained in one call.
        init_range: E starts uniform within +- this.
        generator: of the start.
    """

    def __init__(
        self,
        X: sparse.csr_matrix,
        dims: int,
        *,
        documents: int,
        init_range: float,
        generator: torch.Generator,
    ) -> None:
        terms = X.shape[1]
        self.embedding = torch.empty((terms, dims)).uniform_(-init_range, init_range, generator=generator)
        self.bias = log_frequencies(X)
        self.parameters = [self.embedding, self.bias]
        for parameter in self.parameters:
            parameter.requires_grad_()
        # Arrays that every step works in.
        self._lent = DecoderArrays(torch.empty((documents, terms)), torch.empty_like(self.embedding))

    def log_likelihood(self, z: Tensor, words: WordSets, *, embedding: Tensor | None = None) -> Tensor:
        """Return log p(x|z), one value a document; once for each backward pass.

        Args:
            z: (documents, dims).
            words: of the documents.
            embedding: in place of E itself, (terms, dims of z), something that was computed from it.
        """
        lent = self._lent
        if embedding is None:
            embedding = self.embedding
        else:
            lent = DecoderArrays(lent.logits, torch.empty_like(embedding))
        return word_log_likelihood(z, embedding, self.bias, words, lent=lent)

    def array(self) -> npt.NDArray[np.float32]:
        """Return E (terms, dims) as it is now, as an array of its own."""
        return self.embedding.detach().numpy().copy()


def log_frequencies(X: sparse.csr_matrix) -> Tensor:
    """The log of the share of documents that have each word, with one more for each."""
    present = np.bincount(X.indices[X.data > 0], minlength=X.shape[1])
    return torch.from_numpy(np.log((present + 1.0) / X.shape[0])).float()
