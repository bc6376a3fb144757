"""A FastAPI application that returns a fixed response to a search: python -m benchmarks.bare PORT FILE."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel

from snuh.server.schemas import SearchResponse


class Ask(BaseModel):
    text: str
    k: int = 10
    approximate: bool = False


def make_app(answer: Any) -> FastAPI:
    app = FastAPI()
    ready = json.dumps(answer).encode()

    @app.post("/bare")
    async def bare(ask: Ask):  # type: ignore[no-untyped-def]  # as most endpoints are written
        return answer

    @app.post("/typed")
    async def typed(ask: Ask) -> Any:  # with a declared type pydantic serialises the JSON, which is faster
        return answer

    @app.post("/model")
    async def model(ask: Ask) -> SearchResponse:  # with the model of the response, as FastAPI recommends
        return answer

    @app.post("/ready")
    async def ready_bytes(ask: Ask) -> Response:
        return Response(ready, media_type="application/json")

    return app


if __name__ == "__main__":
    answer = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    uvicorn.run(make_app(answer), port=int(sys.argv[1]), log_level="warning", access_log=False)
