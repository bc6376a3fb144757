"""Train, store documents with their codes, and search: python examples/first_search.py [SOURCE [TEXT]]"""

import sys
from tempfile import mkdtemp

import snuh

source = snuh.open_source(sys.argv[1] if len(sys.argv) > 1 else "sqlite-docs")
query = sys.argv[2] if len(sys.argv) > 2 else "power failure in the middle of a commit"

hasher = snuh.TextHasher(method="itq", bits=64).fit_source(source)
with snuh.Collection.create(f"{mkdtemp()}/collection", hasher.model_) as collection:
    collection.add(source)
    print(collection.search(query, k=5))
