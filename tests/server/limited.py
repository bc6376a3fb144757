"""Runs a server with given limits: python -m tests.server.limited LIMITS FOLDER..."""

from __future__ import annotations

import ast
import sys
import tempfile
from pathlib import Path

from snuh.server.run import listen, run
from snuh.server.settings import Limits, Settings, named_folders


def main(limits: str, *folders: str) -> None:
    with tempfile.TemporaryDirectory() as scratch, listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        settings = Settings(
            folders=named_folders([Path(folder) for folder in folders]),
            scratch=scratch,
            limits=Limits(**ast.literal_eval(limits)),
        )
        run(settings, listener, on_ready=lambda: print(f"at http://127.0.0.1:{port} ", file=sys.stderr))


if __name__ == "__main__":
    main(*sys.argv[1:])
