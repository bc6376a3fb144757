"""Corpora with known near-duplicates: a tenth of the documents is copied, each copy edited in one way."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

COPIED = 0.1
FRACTIONS = (0.02, 0.05, 0.1, 0.2)
HEADER = "From: editor@example.org\nDate: Tue, 3 May 1994 10:15:00 GMT\nLines: 25\n\n"
SIGNATURE = "\n--\nPat Example, Department of Examples\nAll opinions are mine alone\n"


Edit = Callable[[str, random.Random], str]


@dataclass(frozen=True)
class World:
    """Texts, each with the document it comes from and its edit ("" for an original)."""

    texts: list[str]
    origin: np.ndarray
    edit: list[str]

    @property
    def pairs(self) -> list[tuple[int, int, str]]:
        """Return (original, copy, edit) of all copies."""
        originals = {int(o): row for row, o in enumerate(self.origin) if not self.edit[row]}
        return [(originals[int(self.origin[row])], row, edit) for row, edit in enumerate(self.edit) if edit]


def plant(texts: list[str], *, seed: int) -> World:
    """Copy a tenth of the documents of at least 20 words, edit each copy in one way, and shuffle."""
    rng = random.Random(seed)
    long_enough = [row for row, text in enumerate(texts) if len(text.split()) >= 20]
    options = rng.sample(long_enough, int(COPIED * len(texts)))
    edits = list(edits_by_name(texts).items())
    made = [(text, row, "") for row, text in enumerate(texts)]
    for number, row in enumerate(options):
        name, edit = edits[number % len(edits)]
        made.append((edit(texts[row], rng), row, name))
    rng.shuffle(made)
    return World([m[0] for m in made], np.array([m[1] for m in made]), [m[2] for m in made])


def plant_titles(texts: list[str], *, seed: int) -> World:
    """Copy a tenth of the titles of at least four words, change each copy in one place, and shuffle."""
    rng = random.Random(seed)
    long_enough = [row for row, text in enumerate(texts) if len(text.split()) >= 4]
    edits = list(title_edits([word for text in texts for word in text.split()]).items())
    made = [(text, row, "") for row, text in enumerate(texts)]
    for number, row in enumerate(rng.sample(long_enough, int(COPIED * len(texts)))):
        name, edit = edits[number % len(edits)]
        made.append((edit(texts[row], rng), row, name))
    rng.shuffle(made)
    return World([m[0] for m in made], np.array([m[1] for m in made]), [m[2] for m in made])


def title_edits(vocabulary: list[str]) -> dict[str, Edit]:
    def on_words(change: Callable[[list[str], int, random.Random], list[str]]) -> Edit:
        def edit(text: str, rng: random.Random) -> str:
            words = text.split()
            return " ".join(change(words, rng.randrange(len(words) - 1), rng))

        return edit

    def misspell(word: str, rng: random.Random) -> str:
        place = rng.randrange(max(1, len(word) - 1))
        return word[:place] + word[place : place + 2][::-1] + word[place + 2 :]

    return {
        "same": lambda text, rng: text,
        "case and punctuation": lambda text, rng: re.sub(r"[.,;:!?'\"()]", " ", text).upper(),
        "drop a word": on_words(lambda words, i, rng: words[:i] + words[i + 1 :]),
        "insert a word": on_words(lambda words, i, rng: [*words[:i], rng.choice(vocabulary), *words[i:]]),
        "replace a word": on_words(
            lambda words, i, rng: [*words[:i], rng.choice(vocabulary), *words[i + 1 :]]
        ),
        "misspell a word": on_words(
            lambda words, i, rng: [*words[:i], misspell(words[i], rng), *words[i + 1 :]]
        ),
        "swap words": on_words(lambda words, i, rng: [*words[:i], words[i + 1], words[i], *words[i + 2 :]]),
    }


def edits_by_name(texts: list[str]) -> dict[str, Edit]:
    def some_word(rng: random.Random) -> str:
        return rng.choice(rng.choice(texts).split() or ["word"])

    def drop(word: str, rng: random.Random) -> list[str]:
        return []

    def replace(word: str, rng: random.Random) -> list[str]:
        return [some_word(rng)]

    def insert(word: str, rng: random.Random) -> list[str]:
        return [word, some_word(rng)]

    edits: dict[str, Edit] = {}
    for name, change in (("drop", drop), ("replace", replace), ("insert", insert)):
        for fraction in FRACTIONS:
            edits[f"{name} {fraction:.0%}"] = word_edit(change, fraction)
    edits["swap sentences"] = swap_sentences
    edits["header"] = lambda text, rng: HEADER + text
    edits["signature"] = lambda text, rng: text + SIGNATURE
    edits["quote"] = lambda text, rng: "\n".join(f"> {line}" for line in text.split("\n"))
    edits["case and punctuation"] = lambda text, rng: re.sub(r"[.,;:!?'\"]", " ", text).upper()
    return edits


def word_edit(change: Callable[[str, random.Random], list[str]], fraction: float) -> Edit:
    def edit(text: str, rng: random.Random) -> str:
        words = text.split(" ")
        positions = set(rng.sample(range(len(words)), max(1, round(fraction * len(words)))))
        parts = [change(w, rng) if position in positions else [w] for position, w in enumerate(words)]
        return " ".join(word for part in parts for word in part)

    return edit


def swap_sentences(text: str, rng: random.Random) -> str:
    sentences = re.split(r"(?<=[.!?])\s+", text)
    middle = max(1, len(sentences) // 2)
    return " ".join(sentences[middle:] + sentences[:middle])
