"""Converts the last chunk of a stream to the envelope of a whole answer."""

import re
from typing import Any, Dict

_EXPLAIN_CHARS_MAX = 280


def envelope_of(last: Dict[str, Any]) -> Dict[str, Any]:
    """Takes a final or an error chunk; an envelope is returned unchanged."""
    aside = {key: value for key, value in last.items() if key.startswith("_")}
    if last.get("final"):
        usage = {"_usage": last["usage"]} if "usage" in last else {}
        return {"ok": True, "meta": last["meta"], "data": last["data"], **usage, **aside}
    if not last.get("streaming"):
        return last
    error = _widened(last["error"])
    meta = {"confidence": 0.0, "risk": "high", "explain": error["message"][:_EXPLAIN_CHARS_MAX]}
    # An error chunk has no field for meta, so a meta with more detail is sent as an annotation.
    envelope = {"ok": False, "meta": aside.pop("_meta", meta), "error": error}
    if "partial_data" in last:
        envelope["partial_data"] = last["partial_data"]
    return {**envelope, **aside}


def _widened(narrow: Dict[str, Any]) -> Dict[str, Any]:
    """An error chunk has fewer fields than an envelope's error; the others are in its details."""
    details = dict(narrow.get("details", {}))
    error = {key: value for key, value in narrow.items() if key != "details"}
    if re.fullmatch(r"E\d{4}", str(details.get("module_code"))):
        error["code"] = details.pop("module_code")
    if "suggestion" in details:
        error["suggestion"] = details.pop("suggestion")
    more = details.pop("more", {})
    if details:
        error["details"] = details
    return {**error, **more}
