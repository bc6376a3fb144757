"""The cost of encoding a document: a 64-bit code against a small sentence-embedding model.

    SNUH_DATA=... python -m benchmarks.embedding_cost MODEL [--corpus agnews] [--rounds 5]

The embedding model is a transformer encoder of 6 layers and 384 dimensions with random weights, run by torch
on sequences of 128 tokens; the cost does not depend on the weights, and tokenization is not
included. MODEL is a folder made by `snuh fit`. Prints JSON.
"""

from __future__ import annotations

import argparse
import json

import torch

from benchmarks.alternating import median_seconds
from benchmarks.machine import facts
from snuh.corpus import MatrixSource, open_source
from snuh.model import load

LAYERS, WIDTH, HEADS, INNER, VOCABULARY, TOKENS, BATCH = 6, 384, 12, 1536, 30_522, 128, 32


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--corpus", default="agnews")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    source, model = open_source(options.corpus), load(options.model)
    assert not isinstance(source, MatrixSource)
    texts = [document.text for document in source][:10_000]
    words = torch.nn.Embedding(VOCABULARY, WIDTH)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, activation="gelu", batch_first=True)
    transformer = torch.nn.TransformerEncoder(layer, LAYERS).eval()
    tokens = torch.randint(VOCABULARY, (BATCH, TOKENS))

    def embed() -> None:
        with torch.inference_mode():
            transformer(words(tokens)).mean(dim=1)

    middle = median_seconds({"code": lambda: model.encode(texts), "embedding": embed}, rounds=options.rounds)
    code, embedding = middle["code"] / len(texts), middle["embedding"] / BATCH
    result = {
        "corpus": options.corpus,
        "microseconds_a_document": {"code": 1e6 * code, "embedding": 1e6 * embedding},
        "embedding_over_code": embedding / code,
        "bytes_a_document": {"code": model.bits // 8, "embedding": 4 * WIDTH},
        "parameters": {
            "code": sum(array.size for array in model.encoder.arrays().values()),
            "embedding": sum(part.numel() for part in (*words.parameters(), *transformer.parameters())),
        },
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
