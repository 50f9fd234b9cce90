// Errors of the client itself. Errors of a run are envelopes with `ok: false`.

/** The server could not be reached, or not reached again, within the allowed retries. */
export class ConnectionLost extends Error {
  override name = "ConnectionLost";
}

/** The response of the server is neither an envelope nor a stream of chunks. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
}
