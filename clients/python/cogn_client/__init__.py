"""Calls cogn modules over HTTP. Streams recover from lost connections and server restarts.

    from cogn_client import Client

    client = Client("http://127.0.0.1:8787")
    envelope = client.execute("text-classifier", {"text": "You charged me twice."})
    with client.execute_stream("text-classifier", {"text": "You charged me twice."}) as stream:
        for event in stream:
            print(event.kind, event.body)
        print(stream.envelope)
"""

from .assembly import Assembly
from .client import Client
from .errors import ClientError, ConnectionLost, ProtocolError
from .stream import Event, Stream

__all__ = ["Assembly", "Client", "ClientError", "ConnectionLost", "Event", "ProtocolError", "Stream"]
