"""Remove near-duplicates from a Parquet file: python examples/clean_parquet.py IN.parquet OUT.parquet

The file has the columns id and text; all others are kept.
"""

import sys

import pandas as pd

import snuh
from snuh.dedup import deduplicate

frame = pd.read_parquet(sys.argv[1])
model = snuh.TextHasher(method="itq", bits=64).fit(frame["text"]).model_
report = deduplicate(model, frame, threshold=0.85, keep="longest")
dropped = {duplicate.id for duplicate in report.duplicates if not duplicate.keep}
frame[~frame["id"].astype(str).isin(dropped)].to_parquet(sys.argv[2])
print(f"{len(frame)} documents, {report.clusters} clusters of near-duplicates, {len(dropped)} dropped")
for cluster in report.largest(3):
    print([duplicate.id for duplicate in cluster])
