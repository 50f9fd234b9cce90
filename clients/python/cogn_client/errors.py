"""What can go wrong in the client itself. What goes wrong in a run is an envelope with ``ok: false``."""


class ClientError(Exception):
    """Any error of this package."""


class ConnectionLost(ClientError):
    """The server could not be reached, or not again, within the allowed tries."""


class ProtocolError(ClientError):
    """The server answered with something that is no envelope and no stream of chunks."""
