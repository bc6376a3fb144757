"""Logs of the server: JSON lines on standard error."""

from __future__ import annotations

import json
import logging
import logging.config
from datetime import UTC, datetime
from typing import Any

LEVELS = ("debug", "info", "warning", "error")


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON; `extra={"values": {...}}` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        values: dict[str, Any] = {  # Any: JSON values
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **getattr(record, "values", {}),
        }
        if record.exc_info:
            values["traceback"] = self.formatException(record.exc_info)
        return json.dumps(values, default=str)


def logging_config(*, level: str, has_access_log: bool) -> dict[str, Any]:
    """Return the configuration of `logging`, which uvicorn applies in every process."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "snuh.server.logs.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": {
            "snuh": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
            "snuh.access": {"level": "INFO" if has_access_log else "CRITICAL"},
            "uvicorn": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
        },
    }
