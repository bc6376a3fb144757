"""A method of your own, compared with ITQ: python examples/own_method.py [SOURCE]

Principal directions of the documents, each split at its median, so that every bit is balanced. A method for
the package itself takes five steps, described in CONTRIBUTING.md.
"""

import sys
from dataclasses import dataclass

import numpy as np

import snuh
from snuh.encoder import Encoder, Layer
from snuh.features import TfidfFeatures
from snuh.methods.itq import ITQ
from snuh.metrics import precision_at_k
from snuh.training.estimator import HashingEstimator, TrainingResult
from snuh.training.spectral import fit_principal


@dataclass(kw_only=True, eq=False, repr=False)
class MedianPCA(HashingEstimator):
    """The signs of centred principal components, the first of them repeated if there are too few."""

    def train(self, data, on_progress):
        principal = fit_principal(data.X, dims=self.n_bits, seed=int(self.seed))
        columns = np.arange(self.n_bits) % principal.directions.shape[1]
        weights = principal.directions[:, columns].astype(np.float32)
        thresholds = np.median(data.X @ weights, axis=0).astype(np.float32)
        encoder = Encoder((Layer(weights, np.zeros(self.n_bits, dtype=np.float32)),), thresholds)
        return TrainingResult(encoder, data.score(encoder), "solved")


documents = list(snuh.open_source(sys.argv[1] if len(sys.argv) > 1 else "sqlite-docs"))
train = [document for document in documents if document.split in (None, "train")]
test = [document for document in documents if document.split == "test"]
features = TfidfFeatures().fit(document.text for document in train)
X_train = features.transform(document.text for document in train)
X_test = features.transform(document.text for document in test)
for method in (MedianPCA(n_bits=64), ITQ(n_bits=64)):
    method.fit(X_train)
    precision = precision_at_k(
        method.transform(X_test),
        [document.labels for document in test],
        method.transform(X_train),
        [document.labels for document in train],
        k=20,
    )
    print(f"{type(method).__name__:10} precision@20 {precision:.3f}")
