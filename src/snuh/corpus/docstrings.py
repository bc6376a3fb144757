"""A corpus that is part of every Python installation: the docstrings of its packages."""

from __future__ import annotations

import ast
import os
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from inspect import cleandoc
from pathlib import Path

from snuh.corpus.document import JSON, Document, FractionCallback, TextSource
from snuh.errors import InputError

STDLIB = "stdlib"
DOCUMENTS_PER_REPORT = 256
# Tests take long to parse and say little about a package; vendored packages would get a wrong label.
SKIPPED_FOLDERS = {"test", "tests", "testing", "benchmarks", "_vendor", "__pycache__", "site-packages"}


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    module: str
    rank: bytes


class DocstringSource(TextSource):
    """The names and docstrings of modules, classes and functions, labelled with the package they come from.

    The files are parsed, never imported. The documents are cached in memory, because parsing is slow.
    """

    def __init__(
        self,
        *,
        packages: Mapping[str, Path] | None = None,
        limit: int = 2000,
        min_documents: int = 50,
        min_words: int = 8,
    ) -> None:
        """Take up to `limit` docstrings of at least `min_words` words from each package.

        Args:
            packages: The folder or file of each package by name; all installed packages by default.
            limit: Files of larger packages are read in a fixed random order until the limit is reached.
            min_documents: Packages with fewer docstrings are left out.
            min_words: Shorter docstrings are left out.
        """
        self.name = "docstrings"
        self._packages = packages
        self._limit = limit
        self._min_documents = min_documents
        self._min_words = min_words
        self._documents: tuple[Document, ...] = ()

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents, package by package in the order of their names."""
        is_new = not self._documents
        if is_new:
            self._documents = tuple(self._read(progress))
        if not self._documents:
            raise InputError(
                f"no package has {self._min_documents} docstrings of at least {self._min_words} words"
            )
        for count, document in enumerate(self._documents):
            # The first time, progress is reported while the files are parsed.
            if progress is not None and not is_new and count % DOCUMENTS_PER_REPORT == 0:
                progress(count / len(self._documents))
            yield document
        if progress is not None:
            progress(1.0)

    def _read(self, progress: FractionCallback | None) -> Iterator[Document]:
        packages = installed_packages() if self._packages is None else self._packages
        files = {package: _python_files(package, path) for package, path in sorted(packages.items())}
        total = sum(map(len, files.values()))
        done = 0
        seen: set[bytes] = set()
        names: Counter[str] = Counter()
        for package, listed in files.items():
            documents: list[Document] = []
            for count, file in enumerate(listed):
                if progress is not None and count % 16 == 0:
                    progress((done + count) / total)
                documents.extend(self._new_documents(package, file, seen, names))
                if len(documents) >= self._limit:
                    break
            done += len(listed)
            if len(documents) >= self._min_documents:
                yield from documents[: self._limit]

    def _new_documents(
        self, package: str, file: _File, seen: set[bytes], names: Counter[str]
    ) -> Iterator[Document]:
        for name, text in _docstrings(file.path):
            full = ".".join(filter(None, (file.module, name)))
            # A name may be defined twice: a property and its setter, a.py next to a/__init__.py.
            names[full] += 1
            digest = blake2b(text.encode(), digest_size=16).digest()
            if len(text.split()) < self._min_words or digest in seen:
                continue
            seen.add(digest)
            doc_id = full if names[full] == 1 else f"{full}#{names[full]}"
            title = name or file.module
            metadata: dict[str, JSON] = {"package": package, "name": title}
            # With its name, so that "random forest classifier" finds RandomForestClassifier.
            yield Document(doc_id, f"{title}: {text}", (package,), split_by_id(doc_id), metadata)


def installed_packages() -> dict[str, Path]:
    """Return the path of each top-level package of the running Python, including the standard library."""
    packages = {}
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for path in Path(folder).iterdir() if Path(folder).is_dir() else ():
            name = path.name if path.is_dir() else path.name.removesuffix(".py")
            if name.isidentifier():
                packages[name] = path
    packages[STDLIB] = Path(sysconfig.get_path("stdlib"))
    return packages


def split_by_id(doc_id: str) -> str:
    """Return the split of a document by the hash of its id: 90% train, 5% val, 5% test."""
    percent = int.from_bytes(blake2b(doc_id.encode(), digest_size=8).digest()) % 100
    return "train" if percent < 90 else "val" if percent < 95 else "test"


def _python_files(package: str, path: Path) -> list[_File]:
    if path.is_file():
        return [_File(path, package, b"")]
    files = []
    for parent, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and name.isidentifier()]
        inner = Path(parent).relative_to(path).parts
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix != ".py" or not stem.isidentifier():
                continue
            own = () if stem == "__init__" else (stem,)
            module = ".".join((*(() if package == STDLIB else (package,)), *inner, *own))
            files.append(_File(Path(parent, name), module, blake2b(module.encode()).digest()))
    return sorted(files, key=lambda file: (file.rank, str(file.path)))


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (name inside the module, docstring); nothing for a file that is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escape sequences
            module = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
        return
    yield from _in_body("", module.body)


def _in_body(prefix: str, body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of a module or class; functions inside functions are skipped."""
    if text := _docstring(body):
        yield prefix, text
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _in_body(_join(prefix, node.name), node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := _docstring(node.body)):
            yield _join(prefix, node.name), text


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _docstring(body: list[ast.stmt]) -> str:
    match body:
        case [ast.Expr(value=ast.Constant(value=str(text))), *_]:
            # A string may contain a lone surrogate such as "\\ud83d", which UTF-8 cannot encode.
            return cleandoc(text).encode(errors="replace").decode()
    return ""
