"""Whether the documents have their codes, as far as a few of them tell."""

from __future__ import annotations

import numpy as np

from snuh.collection.postgres.connections import Connection
from snuh.collection.postgres.write import State
from snuh.corpus import Document
from snuh.corpus.record import quote
from snuh.encoding import encode_documents
from snuh.errors import CollectionError
from snuh.model import Model

LOOKED_AT = 10  # documents from all over: opening takes no longer where there are millions


def check_has_codes(connection: Connection, state: State, model: Model, *, name: str) -> None:
    """Raise CollectionError where one of a few documents has lost its code.

    One without any word that the model knows never had one.
    """
    places = np.linspace(1, max(1, state.next_seq - 1), LOOKED_AT).astype(int).tolist()
    # Asked for one by one, by their keys: joined, the planner might read both tables as a whole.
    rows = connection.execute(
        "SELECT DISTINCT d.seq, d.id, d.text FROM unnest(%s::bigint[]) AS wanted (seq) CROSS JOIN LATERAL "
        "(SELECT seq, id, text FROM documents WHERE seq >= wanted.seq ORDER BY seq LIMIT 1) d "
        f"WHERE (SELECT 1 FROM {state.codes} c WHERE c.seq = d.seq) IS NULL ORDER BY d.seq",
        (places,),
    ).fetchall()
    for batch in encode_documents(model, [Document(identity, text) for _, identity, text in rows]):
        for document, code in zip(batch.documents, batch.packed(), strict=True):
            if code is not None:
                raise CollectionError(
                    f"{name}: it has lost codes, such as that of the document {quote(document.id)}: "
                    "restore the tables from a copy"
                )
