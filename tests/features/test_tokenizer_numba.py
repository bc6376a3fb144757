from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import snuh
from snuh.features.tokenizer_numba import NumbaTermCounter, word_characters


def test_the_word_table_agrees_with_the_pattern_on_every_code_point() -> None:
    is_word = re.compile(r"\w").match
    expected = np.fromiter((is_word(chr(code)) is not None for code in range(0x110000)), dtype=np.bool_)
    np.testing.assert_array_equal(word_characters(), expected)


def test_a_word_is_never_taken_for_a_term_that_only_begins_or_ends_like_it() -> None:
    scanner = NumbaTermCounter(["café", "cafés", "straße"], lowercase=True)
    counted = scanner.count(["CAFÉ caf cafésx xcafé straß", "Cafés STRAßE straße café-café"])
    assert counted.indptr.tolist() == [0, 1, 4]
    assert counted.indices.tolist() == [0, 0, 1, 2]
    assert counted.counts.tolist() == [1, 2, 1, 2]


def test_words_end_at_the_end_of_their_text() -> None:
    counted = NumbaTermCounter(["ab", "abcd", "cd"], lowercase=True).count(["ab", "cd", "", "abcd", "a", "b"])
    assert counted.indptr.tolist() == [0, 1, 2, 2, 3, 3, 3]
    assert counted.indices.tolist() == [0, 2, 1]


def test_a_crowded_table_still_finds_every_term() -> None:
    terms = sorted(f"{number:x}term" for number in range(20_000))
    counted = NumbaTermCounter(terms, lowercase=True).count([" ".join(reversed(terms))])
    np.testing.assert_array_equal(counted.indices, np.arange(len(terms)))
    assert set(counted.counts.tolist()) == {1}


def test_kernels_compile_without_a_writable_cache_folder(tmp_path: Path) -> None:
    copy = tmp_path / "snuh"
    shutil.copytree(Path(snuh.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    blocked = tmp_path / "blocked"  # files where folders would be made stop even the super-user
    for path in (blocked, copy / "features" / "__pycache__"):
        path.write_text("")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(tmp_path), "HOME": str(blocked), "XDG_CACHE_HOME": str(blocked)}
    program = (
        "from snuh.features.tokenizer_numba import NumbaTermCounter, _count_terms as kernel;"
        "counter = NumbaTermCounter(['ab'], lowercase=True);"
        "print(counter.count(['AB ab']).counts[0], type(kernel._cache).__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["2", "NullCache"], done.stderr
