"""Models on the Hugging Face hub: `push` uploads a model folder and a model card, `pull` loads one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from snuh.errors import InputError, SnuhError, import_extra
from snuh.io import MODEL_FILES
from snuh.model import Model, load

CARD_FILE = "README.md"
CARD = """---
library_name: snuh
tags: [semantic-hashing, text-retrieval]
---

# {repository}

A [snuh](https://github.com/snuhash/snuh) model: it turns {takes} into codes of {bits} bits.
Method: `{method}`. Trained on {documents} documents.

```python
import snuh  # pip install "snuhash[hub]"

model = snuh.pull("{repository}")
codes = model.encode({example})
```
"""


def push(model: Model | Path | str, repository: str, *, private: bool = False, api: Any = None) -> str:
    """Upload a model, or a model folder, to a repository such as "name/tickets"; return the commit's URL.

    The repository is created if there is none. `api` is a `huggingface_hub.HfApi` with another endpoint or
    token than those of `HF_ENDPOINT`, `HF_TOKEN` and `hf auth login`.
    """
    api = api or import_extra("huggingface_hub").HfApi()
    model = model if isinstance(model, Model) else load(model)
    with tempfile.TemporaryDirectory() as parent, _reporting(repository):
        folder = Path(parent) / "model"
        model.save(folder)
        (folder / CARD_FILE).write_text(_card(model, repository), encoding="utf-8")
        api.create_repo(repository, private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository, folder_path=folder, commit_message=f"Upload a {model.bits}-bit model"
        )
    return str(commit.commit_url)


def pull(repository: str, *, revision: str | None = None, api: Any = None) -> Model:
    """Load a model from a repository, at a branch, tag or commit; ModelError if it holds none.

    Files are kept in the cache of `huggingface_hub`, and are verified like those of any model folder.
    """
    api = api or import_extra("huggingface_hub").HfApi()
    with _reporting(repository):
        folder = api.snapshot_download(repository, revision=revision, allow_patterns=sorted(MODEL_FILES))
    return load(folder)


def _card(model: Model, repository: str) -> str:
    takes_texts = model.features is not None
    return CARD.format(
        repository=repository,
        takes="texts" if takes_texts else f"rows of {model.encoder.inputs} features",
        bits=model.bits,
        method=model.method,
        documents=model.training.get("documents", "an unknown number of"),
        example='["a text"]' if takes_texts else "X",
    )


@contextmanager
def _reporting(repository: str) -> Iterator[None]:
    """Turn errors of the hub into one line."""
    errors = import_extra("huggingface_hub.errors")
    try:
        yield
    except errors.HFValidationError as error:
        raise InputError(f'expected a repository such as "name/model", got "{repository}"') from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(
            f'the hub shows you no repository "{repository}": check its name; if it is private, '
            'run "hf auth login" or set HF_TOKEN'
        ) from error
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise SnuhError(f'the hub failed on "{repository}": {lines[0]}') from error
