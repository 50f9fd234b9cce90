// What can go wrong in the client itself. What goes wrong in a run is an envelope with `ok: false`.

/** The server could not be reached, or not again, within the allowed tries. */
export class ConnectionLost extends Error {
  override name = "ConnectionLost";
}

/** The server answered with something that is no envelope and no stream of chunks. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
}
