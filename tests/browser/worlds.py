"""A small help desk: tickets on three topics, with fields of every type, duplicates and a script."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import snuh

TOPICS = {
    "printer": "printer paper jam tray toner ink page print queue driver scanner cartridge",
    "network": "wifi network router cable slow connection drops vpn signal internet download ping",
    "account": "password login account locked reset email expired user sign code profile access",
}
CITIES = ("Bern", "Zürich", "Basel")
SCRIPT = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>'
UNKNOWN = "qwxyz"
TICKETS, NOTES, BITS = 150, 60, 32


def tickets(count: int = TICKETS) -> list[dict[str, Any]]:
    """Return tickets with a title, a year, a city and a boolean; every 40th repeats the previous one."""
    rng = random.Random(0)
    records: list[dict[str, Any]] = []
    for number in range(count):
        label = list(TOPICS)[number % 3]
        words = [
            *rng.choices(TOPICS[label].split(), k=10),
            *rng.choices(["please", "help", "today"], k=2),
        ]
        record = {
            "id": f"ticket-{number}",
            "title": f"{words[0]} {words[1]} {words[2]}".capitalize(),
            "text": " ".join(words[3:] + words[:3]),
            "labels": [label],
            "year": 2015 + number % 10,
            "desk": {"city": CITIES[number % 3], "open": number % 2 == 0},
        }
        if number % 40 == 39:
            record |= {name: records[-1][name] for name in ("text", "title", "labels")}
        records.append(record)
    return records


def scripted() -> dict[str, Any]:
    """Return a document that runs a script if its text is inserted as HTML."""
    return {
        "id": f"evil {SCRIPT}",
        "title": f"Toner {SCRIPT}",
        "text": f"toner toner cartridge ink {SCRIPT} toner cartridge",
        "labels": [f"printer {SCRIPT}"],
        f"field {SCRIPT.replace(chr(34), '')}": SCRIPT,
        "desk": {"city": SCRIPT},
    }


def make_collections(folder: Path) -> tuple[Path, Path]:
    """Create two collections with one model."""
    records = tickets()
    hasher = snuh.TextHasher(method="itq", bits=BITS, features={"min_df": 1})
    model = hasher.fit([record["text"] for record in records]).model_
    for name, contents in (
        ("tickets", [*records, scripted()]),
        ("notes", [{"id": f"note-{record['id']}", "text": record["text"]} for record in records[:NOTES]]),
    ):
        with snuh.Collection.create(folder / name, model) as collection:
            collection.add(contents)
    return folder / "tickets", folder / "notes"
