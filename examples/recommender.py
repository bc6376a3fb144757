"""Recommend documents to a reader of a few others: python examples/recommender.py [SOURCE [ID ...]]"""

import sys
from collections import defaultdict
from tempfile import mkdtemp

import snuh

source = snuh.open_source(sys.argv[1] if len(sys.argv) > 1 else "sqlite-docs")
read = sys.argv[2:] or [document.id for document in list(source)[:3]]

hasher = snuh.TextHasher(method="itq", bits=64).fit_source(source)
with snuh.Collection.create(f"{mkdtemp()}/collection", hasher.model_) as collection:
    collection.add(source)
    scores = defaultdict(float)
    for doc_id in read:
        for hit in collection.similar(doc_id, k=50, rerank="asymmetric"):
            scores[hit.document.id] += 1 / (1 + hit.distance)  # near documents count more
    best = sorted((-score, doc_id) for doc_id, score in scores.items() if doc_id not in read)[:5]
    for score, doc_id in best:
        text = " ".join(collection.get(doc_id).text.split())[:70]
        print(f"{-score:.3f}  {doc_id}  {text}")
