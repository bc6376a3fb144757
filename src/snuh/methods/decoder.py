"""The decoder of all word models: a softmax over the vocabulary, linear in the code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from snuh.methods.layers import DecoderArrays, WordSets, word_log_likelihood


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
