"""Elements of a page: built as a tree, so that every text in it is escaped when it is written."""

from __future__ import annotations

import re
from typing import TypeAlias
from xml.etree.ElementTree import Element, tostring

Child: TypeAlias = Element | str

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def tag(kind: str, /, *children: Child, **attributes: str | float) -> Element:
    """Return an element; `class_` is the attribute class, and `stroke_width` is stroke-width."""
    named = {key.rstrip("_").replace("_", "-"): _value(value) for key, value in attributes.items()}
    element = Element(kind, named)
    for child in children:
        add(element, child)
    return element


def add(element: Element, child: Child) -> None:
    """Put a child at the end."""
    if isinstance(child, Element):
        element.append(child)
    elif len(element):
        element[-1].tail = (element[-1].tail or "") + plain(child)
    else:
        element.text = (element.text or "") + plain(child)


def plain(text: str) -> str:
    """Put a replacement sign for what no page can hold: control characters, and halves of characters."""
    whole = text.encode("utf-8", "replace").decode()
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", whole)


def written(element: Element) -> str:
    """Return the element as HTML."""
    return tostring(element, encoding="unicode", method="html")


def decimal(value: float) -> str:
    """Write a coordinate, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def _value(value: str | float) -> str:
    return plain(value) if isinstance(value, str) else decimal(value)
