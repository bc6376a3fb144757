"""A model as one file."""

from __future__ import annotations

import zipfile
from io import BytesIO

from snuh.collection.modelfiles import files_of
from snuh.model import Model

ZIP_TYPE = "application/zip"


def archived(model: Model) -> BytesIO:
    """Return the files of a model folder in a zip file, ready to be read."""
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as together:
        for name, content in files_of(model).content.items():
            together.writestr(name, content)
    archive.seek(0)
    return archive
