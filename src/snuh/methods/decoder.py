"""The decoder of all methods that explain words: a softmax over the vocabulary, linear in the code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from snuh.methods.layers import DecoderBuffers, WordSets, word_log_likelihood


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
