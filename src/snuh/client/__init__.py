"""Clients for collections on a server, with the methods of `snuh.Collection`."""

from __future__ import annotations

from snuh.client.async_client import AsyncClient
from snuh.client.client import Client
from snuh.client.responses import DuplicateGroups, Facet, Projection

__all__ = ["AsyncClient", "Client", "DuplicateGroups", "Facet", "Projection"]
