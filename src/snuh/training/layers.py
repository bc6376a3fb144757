"""The two layers that dominate the cost of a step, for sparse rows, with hand-written gradients.

`sparse_linear` multiplies CSR rows with a dense weight; `word_log_likelihood` scores the words of a document
under a softmax over the vocabulary with three matrix products in all (one forward, two backward).

Allocating an array of some megabytes costs as much as filling it, so training passes buffers that are reused
by every step: gradients are written into a buffer, which becomes `parameter.grad`, and the decoder's logits
into another. Both layers support one backward pass for each forward pass.
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
from snuh.training.sparse_ops import SparseRows, explain_words, transpose


@dataclass(frozen=True)
class WordSets:
    """The distinct words of a batch of documents, in the layout of a CSR matrix."""

    offsets: npt.NDArray[np.integer]  # (documents + 1,) where each document's words start
    words: npt.NDArray[np.integer]  # (words,)
    sizes: Tensor  # (documents,) number of distinct words of each document


def word_sets(
    rows: sparse.csr_matrix | SparseRows, dtype: torch.dtype = torch.float32, *, documents: int | None = None
) -> WordSets:
    """Return the columns with a positive value: the distinct words of each document, without counts.

    Args:
        rows: one per document.
        dtype: of the sizes.
        documents: use only the first n rows; all if not given.
    """
    offsets = rows.indptr if documents is None else rows.indptr[: documents + 1]
    words = rows.indices[: offsets[-1]]
    positive = rows.data[: offsets[-1]] > 0
    if not positive.all():
        offsets = np.concatenate([[0], positive.cumsum()])[offsets]
        words = words[positive]
    return WordSets(offsets, words, torch.from_numpy(np.diff(offsets)).to(dtype))


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
        gradient: a buffer for the gradient of the weight, of the same shape.
        scale: (inputs,), a factor for each column, also a parameter; 1 if not given.
    """
    result: Tensor = _SparseLinear.apply(weight, scale, rows, gradient)  # type: ignore[no-untyped-call]
    return result


@dataclass(frozen=True)
class DecoderBuffers:
    """Buffers of `word_log_likelihood`."""

    logits: Tensor  # (at least documents, vocabulary), in use until the backward pass
    gradient: Tensor  # of the shape of the embedding


def word_log_likelihood(
    z: Tensor, embedding: Tensor, bias: Tensor, present: WordSets, *, buffers: DecoderBuffers | None = None
) -> Tensor:
    """Return log p(x|z) of Eq. (3): log softmax over the vocabulary, summed over the distinct words.

    Args:
        z: latent values (documents, bits).
        embedding: the decoder's E, stored as (vocabulary, bits).
        bias: (vocabulary,).
        present: the words of each document.
        buffers: reused arrays; allocated if not given.

    Returns:
        One value per document.
    """
    if buffers is None:
        buffers = DecoderBuffers(
            torch.empty((len(z), len(embedding)), dtype=z.dtype), torch.empty_like(embedding)
        )
    result: Tensor = _WordLogLikelihood.apply(z, embedding, bias, present, buffers)  # type: ignore[no-untyped-call]
    return result


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        scale: Tensor | None,
        rows: sparse.csr_matrix | SparseRows,
        buffer: Tensor | None,
    ) -> Tensor:
        ctx.weight, ctx.rows, ctx.buffer, ctx.scaled = weight, rows, buffer, rows
        if scale is not None:
            data = rows.data * scale.detach().numpy()[rows.indices]
            ctx.scaled = SparseRows(rows.indptr, rows.indices, data, rows.shape)
        product = np.empty((rows.shape[0], weight.shape[1]), dtype=rows.data.dtype)
        _multiply(rows.indptr, rows.indices, ctx.scaled.data, weight.detach().numpy(), product)
        return torch.from_numpy(product)

    @staticmethod
    def backward(ctx: Any, by_product: Tensor) -> tuple[Tensor | None, ...]:
        rows, by_rows = ctx.rows, by_product.contiguous().numpy()
        columns = transpose(ctx.scaled)
        gradient = _gradient_array(ctx.weight, ctx.buffer)
        _multiply(columns.indptr, columns.indices, columns.data, by_rows, gradient.numpy())
        by_scale = None
        if ctx.needs_input_grad[1]:
            sums = np.zeros(rows.shape[1], dtype=rows.data.dtype)
            weight = ctx.weight.detach().numpy()
            _sum_by_column(rows.indptr, rows.indices, rows.data, weight, by_rows, sums)
            by_scale = torch.from_numpy(sums)
        return _set_gradient(gradient, ctx.weight), by_scale, None, None


class _WordLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, embedding: Tensor, bias: Tensor, present: WordSets, buffers: DecoderBuffers
    ) -> Tensor:
        logits = torch.mm(z, embedding.t(), out=buffers.logits[: len(z)])
        present_sum, maximum, total = (torch.empty_like(present.sizes) for _ in range(3))
        sums = (present_sum.numpy(), maximum.numpy(), total.numpy())
        explain_words(logits.numpy(), bias.detach().numpy(), present.offsets, present.words, *sums)
        ctx.z, ctx.embedding, ctx.present, ctx.gradient = z, embedding, present, buffers.gradient
        ctx.by_logits, ctx.total = logits, total
        return present_sum - present.sizes * (maximum + torch.log(total))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Apply the factor of each document to the smaller operand of each product.

        With g the incoming gradient, n the number of words and S the total of a document, and e the
        exponentiated logits, the gradient of the logits is
        g (present - n e / S) = -(g n / S) (e - present S / n).
        """
        by_logits = ctx.by_logits
        factor = -gradient * ctx.present.sizes / ctx.total
        by_embedding = _gradient_array(ctx.embedding, ctx.gradient)
        torch.mm(by_logits.t(), factor[:, None] * ctx.z, out=by_embedding)
        return (
            factor[:, None] * (by_logits @ ctx.embedding),
            _set_gradient(by_embedding, ctx.embedding),
            torch.mv(by_logits.t(), factor),
            None,
            None,
        )


def _gradient_array(parameter: Tensor, buffer: Tensor | None) -> Tensor:
    """Return the buffer, or a new array if it holds the gradient of an earlier pass."""
    is_in_use = parameter.is_leaf and parameter.grad is not None
    return torch.empty_like(parameter) if buffer is None or is_in_use else buffer


def _set_gradient(gradient: Tensor, parameter: Tensor) -> Tensor | None:
    """Assign `parameter.grad` directly: returned to autograd, a buffer would be copied."""
    if not parameter.is_leaf or parameter.grad is not None:
        return gradient
    parameter.grad = gradient
    return None


@njit(parallel=True)
def _multiply(indptr, indices, data, weight, product):  # type: ignore[no-untyped-def]
    """Write rows @ weight into product, four values at a time to reduce memory traffic."""
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
    """Sum x (w . g) over the values x of each column, with w its weights and g the gradient of the row."""
    for r in range(by_rows.shape[0]):
        for p in range(indptr[r], indptr[r + 1]):
            sums[indices[p]] += data[p] * np.dot(weight[indices[p]], by_rows[r])


# The decoder of all methods that explain words: a softmax over the vocabulary, linear in the code.


class WordDecoder:
    """log p(x|z) = sum over the distinct words w of x of log softmax(E z + b)_w.

    The bias is initialised to the frequencies of the words in the corpus, so that from the first step on the
    bits have to explain only what is specific to a document.

    Args:
        X: the rows whose words are counted.
        dims: the length of z.
        documents: maximum number of documents scored in one call.
        init_range: the initial E is uniform within +- this.
        generator: for the initial E.
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
        self._buffers = DecoderBuffers(torch.empty((documents, terms)), torch.empty_like(self.embedding))

    def log_likelihood(self, z: Tensor, words: WordSets, *, embedding: Tensor | None = None) -> Tensor:
        """Return log p(x|z), one value per document; call it once per backward pass.

        Args:
            z: (documents, dims).
            words: of the documents.
            embedding: used instead of E (terms, dims of z), for example a function of it.
        """
        buffers = self._buffers
        if embedding is None:
            embedding = self.embedding
        else:
            buffers = DecoderBuffers(buffers.logits, torch.empty_like(embedding))
        return word_log_likelihood(z, embedding, self.bias, words, buffers=buffers)

    def array(self) -> npt.NDArray[np.float32]:
        """Return a copy of E (terms, dims)."""
        return self.embedding.detach().numpy().copy()


def log_frequencies(X: sparse.csr_matrix) -> Tensor:
    """Return the log of the fraction of documents with each word, with add-one smoothing."""
    present = np.bincount(X.indices[X.data > 0], minlength=X.shape[1])
    return torch.from_numpy(np.log((present + 1.0) / X.shape[0])).float()


# Random bits with the straight-through gradient.


def draw_bits(probability: Tensor, generator: torch.Generator) -> Tensor:
    """Draw s ~ Bernoulli(q) as 0.0 and 1.0; the gradient of s is passed to q (straight-through)."""
    drawn: Tensor = _StraightThrough.apply(probability, generator)  # type: ignore[no-untyped-call]
    return drawn


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, probability: Tensor, generator: torch.Generator) -> Tensor:
        uniform = torch.rand(probability.shape, generator=generator, dtype=probability.dtype)
        return (uniform < probability).to(probability.dtype)

    @staticmethod
    def backward(ctx: Any, by_bits: Tensor) -> tuple[Tensor, None]:
        return by_bits, None
