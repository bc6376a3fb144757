from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from snuh.corpus import Document
from snuh.corpus.docstrings import DocstringSource, installed_packages, split_by_id
from snuh.errors import InputError

MODULE = '''"""A module about shapes, with words enough."""
raise SystemExit("must not be run")

class Circle:
    """A round thing with a radius and centre."""

    def area(self):
        """Return the area
        that the circle covers, exactly."""

    @property
    def radius(self):
        """The distance from the centre to the edge."""

    @radius.setter
    def radius(self, value):
        """Set the distance from centre to the edge."""

    def short(self):
        """Too short."""

async def wait():
    """Wait until every shape has been drawn completely."""
    def inner():
        """Not looked at, although it has words enough."""
'''


def package(folder: Path, name: str, *, functions: int) -> Path:
    (folder / name).mkdir()
    source = "".join(
        f'def f{number}():\n    """Function number {number} of the package {name}, for tests."""\n'
        for number in range(functions)
    )
    (folder / name / "many.py").write_text(source)
    return folder / name


def test_docstrings_are_found_without_running_the_code(tmp_path: Path) -> None:
    folder = tmp_path / "shapes"
    (folder / "tests").mkdir(parents=True)
    (folder / "__init__.py").write_text(MODULE)
    (folder / "copy.py").write_text(MODULE)
    (folder / "broken.py").write_text("def (:\n")
    (folder / "nul.py").write_bytes(b"x = '\0'")
    (folder / "tests" / "test_it.py").write_text('"""Nothing of this file is taken, being a test."""')
    found = list(DocstringSource(packages={"shapes": folder}, min_documents=1, min_words=7))
    # Which of two equal files is taken first depends on the hash of its name alone.
    names = {document.id.removeprefix("shapes").removeprefix(".copy").removeprefix(".") for document in found}
    assert names == {"", "Circle", "Circle.area", "Circle.radius", "Circle.radius#2", "wait"}
    area = next(document for document in found if document.id.endswith("area"))
    assert area == Document(
        area.id,
        "Circle.area: Return the area\nthat the circle covers, exactly.",
        ("shapes",),
        split_by_id(area.id),
        {"package": "shapes", "name": "Circle.area"},
    )


def test_large_packages_are_capped_and_small_ones_left_out(tmp_path: Path) -> None:
    sizes = {"large": 30, "fitting": 10, "small": 4}
    packages = {name: package(tmp_path, name, functions=size) for name, size in sizes.items()}
    source = DocstringSource(packages=packages, limit=20, min_documents=5)
    counts = Counter(document.labels for document in source)
    assert counts == {("fitting",): 10, ("large",): 20}


def test_the_same_packages_give_the_same_documents(tmp_path: Path) -> None:
    packages = {name: package(tmp_path, name, functions=9) for name in ("b", "a")}
    reports: list[float] = []
    first = DocstringSource(packages=packages, min_documents=1)
    documents = list(first.documents(reports.append))
    again = DocstringSource(packages=dict(reversed(packages.items())), min_documents=1)
    assert documents == list(first) == list(again)
    assert [document.labels for document in documents] == [("a",)] * 9 + [("b",)] * 9
    assert reports == sorted(reports)
    assert reports[-1] == 1.0


def test_splits_are_about_ninety_five_and_five_percent() -> None:
    counts = Counter(split_by_id(f"package.name{number}") for number in range(20_000))
    # Ten standard deviations of a binomial count either way.
    assert counts["train"] == pytest.approx(18_000, abs=425)
    assert counts["val"] == pytest.approx(1_000, abs=310)
    assert counts["test"] == pytest.approx(1_000, abs=310)
    assert split_by_id("numpy.linalg.norm") == split_by_id("numpy.linalg.norm")


def test_installed_packages_are_found() -> None:
    packages = installed_packages()
    assert (packages["numpy"] / "__init__.py").is_file()
    assert (packages["scipy"] / "__init__.py").is_file()
    assert (packages["stdlib"] / "json").is_dir()


def test_a_real_package_gives_unique_ids(tmp_path: Path) -> None:
    documents = list(
        DocstringSource(packages={"json": installed_packages()["stdlib"] / "json"}, min_documents=5)
    )
    assert any(document.id == "json.dumps" for document in documents)
    assert len({document.id for document in documents}) == len(documents)


def test_two_modules_of_one_name_get_different_ids(tmp_path: Path) -> None:
    folder = tmp_path / "shapes"
    (folder / "a").mkdir(parents=True)
    (folder / "a.py").write_text('"""The module that lies beside a folder of its name."""')
    (folder / "a" / "__init__.py").write_text('"""The folder that lies beside a module of its name."""')
    documents = list(DocstringSource(packages={"shapes": folder}, min_documents=1))
    assert [document.id for document in documents] == ["shapes.a", "shapes.a#2"]


def test_a_lone_surrogate_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "halves.py"
    path.write_text('"""Some words before half a character \\ud83d and after it."""\n')
    [document] = DocstringSource(packages={"halves": path}, min_documents=1)
    assert document.text == "halves: Some words before half a character ? and after it."


def test_no_docstrings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no package has 50 docstrings of at least 8 words"):
        list(DocstringSource(packages={"small": package(tmp_path, "small", functions=3)}))


def test_every_iteration_reports_progress(tmp_path: Path) -> None:
    source = DocstringSource(packages={"large": package(tmp_path, "large", functions=600)})
    for _ in ("parsed", "from memory"):
        done: list[float] = []
        documents = source.documents(done.append)
        next(documents)
        first = len(done)
        assert len(list(documents)) == 599
        assert done == sorted(done) and done[-1] == 1.0
        assert all(fraction < 1.0 for fraction in done[:first])
    assert done == [0.0, 256 / 600, 512 / 600, 1.0]
