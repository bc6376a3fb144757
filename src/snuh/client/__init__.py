"""Collections on a server, with the methods of a collection that is opened here."""

from __future__ import annotations

from snuh.client.client import Client
from snuh.client.responses import DuplicateGroups, FieldFacts, Plane

__all__ = ["Client", "DuplicateGroups", "FieldFacts", "Plane"]
