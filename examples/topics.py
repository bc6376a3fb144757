"""Cluster documents, name the clusters and draw a map: python examples/topics.py [SOURCE [MAP.png]]"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

import snuh
from snuh.codes import unpack

source = snuh.open_source(sys.argv[1] if len(sys.argv) > 1 else "sqlite-docs")
texts = [document.text for document in source]

model = snuh.TextHasher(method="itq", bits=64).fit(texts).model_
signs = unpack(model.encode(texts)) * 2.0 - 1.0  # squared distances are four times the Hamming distances
clusters = KMeans(n_clusters=8, n_init=4, random_state=0).fit_predict(signs)

rows = model.features.transform(texts)  # TF-IDF
words = np.array(model.features.words)
for cluster in range(8):
    weights = np.asarray(rows[clusters == cluster].mean(axis=0) - rows.mean(axis=0)).ravel()
    print(f"{(clusters == cluster).sum():6}  {' '.join(words[weights.argsort()[::-1][:6]])}")

places = PCA(n_components=2, random_state=0).fit_transform(signs)
plt.figure(figsize=(8, 8))
plt.scatter(places[:, 0], places[:, 1], c=clusters, s=4, cmap="tab10")
plt.axis("off")
plt.savefig(sys.argv[2] if len(sys.argv) > 2 else "map.png", dpi=150)
