"""Errors of the client itself. Errors of a run are envelopes with ``ok: false``."""


class ClientError(Exception):
    """Any error of this package."""


class ConnectionLost(ClientError):
    """The server could not be reached, or not reached again, within the allowed retries."""


class ProtocolError(ClientError):
    """The response of the server is neither an envelope nor a stream of chunks."""
