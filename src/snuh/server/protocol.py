"""HTTP connections that do not wait for ever, and whose own refusals are JSON as well."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from snuh.server.refusals import refusal_body


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with an end to the patience for a request that does not come."""

    seconds = 30.0  # for the head of a request to come
    most = 1_000  # connections at once
    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(503, "unavailable", "there are too many connections: try again later")
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, and wait on where it was not a whole head."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Refuse a body that was cut short; whoever has sent all of it still gets an answer."""
        self._stop_waiting()
        if self.cycle is None or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False
        if self.cycle.more_body and not self.cycle.response_started:
            self._refuse(400, "invalid", "the body ended before it was whole: send all of it")
            return False
        return True  # the transport stays open for the answer

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "invalid", "this is no HTTP request that can be read")

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that is idle, or whose other end does not take its answer."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _wait_for_head(self) -> None:
        if self._alarm is None and not self.transport.is_closing():
            self._alarm = self.loop.call_later(self.seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _give_up(self) -> None:
        self._alarm = None
        self._refuse(408, "slow", f"no whole request came within {self.seconds:g} seconds")

    def _refuse(self, status: int, kind: str, sentence: str) -> None:
        if self.transport.is_closing():
            return
        body = refusal_body(kind, sentence)
        head = [
            STATUS_LINE[status],
            b"content-type: application/json\r\nconnection: close\r\ncontent-length: ",
            str(len(body)).encode(),
            b"\r\n\r\n",
        ]
        self.transport.write(b"".join([*head, body]))
        self.transport.close()


def patient_protocol(*, seconds: float, connections: int) -> type[PatientProtocol]:
    """Return the protocol with limits of its own."""
    return type("LimitedProtocol", (PatientProtocol,), {"seconds": seconds, "most": connections})
