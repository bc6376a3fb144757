"""What a run looks at beside figures: documents at growing distance from a query, and a map of the codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from snuh.codes import hamming_blocks
from snuh.encoder import Encoder
from snuh.experiments.corpora import Corpus, read_titles
from snuh.experiments.run import Observe, Run

DISTANCES = (1, 10, 20, 50, 70, 90)  # of the paper's case study, of 128 bits
MAP_POINTS = 2_000
MAP_SIZE = 1_000


def observe(run: Run, encoder: Encoder, corpus: Corpus) -> dict[str, Any] | None:
    """Return what the run is to look at; None where that is the figures alone."""
    look = OBSERVERS.get(run.observe)
    return None if look is None else look(run, encoder, corpus)


def examples(run: Run, encoder: Encoder, corpus: Corpus) -> dict[str, Any]:
    """Return a query, the test document of the seed's number, and training documents ever further from it."""
    train, test = corpus.splits["train"], corpus.splits["test"]
    query = run.seed % len(test.ids)
    [(_, distances)] = hamming_blocks(encoder.encode(test.X[[query]]), encoder.encode(train.X))
    rows = []
    for distance in DISTANCES:
        wanted = round(distance * run.bits / 128)
        nearest = int(np.argmin(abs(distances[0].astype(np.int64) - wanted)))
        if nearest not in rows:
            rows.append(nearest)
    titles = read_titles(run.corpus, {test.ids[query], *(train.ids[row] for row in rows)})
    return {
        "query": {"labels": list(test.labels[query]), "title": titles[test.ids[query]]},
        "documents": [
            {
                "distance": int(distances[0][row]),
                "labels": list(train.labels[row]),
                "title": titles[train.ids[row]],
            }
            for row in rows
        ],
    }


def latent_map(run: Run, encoder: Encoder, corpus: Corpus) -> dict[str, Any]:
    """Return points of test documents in the plane: t-SNE of the values that the bits are cut from."""
    from sklearn.manifold import TSNE

    test = corpus.splits["test"]
    rows = [row for row, labels in enumerate(test.labels) if labels][:MAP_POINTS]
    firsts = [min(test.labels[row]) for row in rows]
    names = sorted(set(firsts))
    values = encoder.values(test.X[rows])
    perplexity = min(30, (len(rows) - 1) / 3)
    places = TSNE(random_state=run.seed, init="pca", perplexity=perplexity).fit_transform(values)
    places = (places - places.min(0)) / np.ptp(places, axis=0).max()
    points = np.round(places * MAP_SIZE).astype(int).tolist()
    return {
        "labels": names,
        "points": [[*point, names.index(label)] for point, label in zip(points, firsts, strict=True)],
    }


OBSERVERS: Mapping[Observe, Callable[[Run, Encoder, Corpus], dict[str, Any]]] = {
    "examples": examples,
    "map": latent_map,
}
