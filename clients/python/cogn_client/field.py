"""Paths of fields: ``data.items[0].label``, and ``data["a.b"]`` for keys that contain a dot, a bracket or a quote."""

import json
from typing import Any, List, Union

Step = Union[str, int]


def steps_of(field: str) -> List[Step]:
    """``data.items[0].name`` as ``["data", "items", 0, "name"]``."""
    steps: List[Step] = []
    rest = field
    while rest:
        if rest.startswith('["'):
            try:
                key, length = json.JSONDecoder().raw_decode(rest[1:])
            except json.JSONDecodeError:
                raise ValueError(f"invalid field path {field!r}") from None
            steps.append(key)
            rest = rest[1 + length :]
            if not rest.startswith("]"):
                raise ValueError(f"invalid field path {field!r}")
            rest = rest[1:]
        elif rest.startswith("["):
            number, bracket, rest = rest[1:].partition("]")
            if not bracket or not number.isdecimal():
                raise ValueError(f"invalid field path {field!r}")
            steps.append(int(number))
        else:
            rest = rest[1:] if steps and rest.startswith(".") else rest
            end = min((at for at in (rest.find("."), rest.find("[")) if at >= 0), default=len(rest))
            if end == 0:
                raise ValueError(f"invalid field path {field!r}")
            steps.append(rest[:end])
            rest = rest[end:]
    if not steps:
        raise ValueError("empty field path")
    return steps


def get(value: Any, steps: List[Step]) -> Any:
    """The value at this path, or ``None``."""
    for step in steps:
        if isinstance(step, int):
            fits = isinstance(value, list) and step < len(value)
        else:
            fits = isinstance(value, dict) and step in value
        if not fits:
            return None
        value = value[step]
    return value


def put(root: Any, steps: List[Step], new: Any) -> None:
    """Sets a value and creates the containers on its path. A list grows by one element at a time."""
    holder = root
    for step, following in zip(steps, steps[1:]):
        empty: Any = [] if isinstance(following, int) else {}
        child = get(holder, [step])
        if not isinstance(child, type(empty)):
            child = empty
            _set(holder, step, child)
        holder = child
    _set(holder, steps[-1], new)


def _set(holder: Any, step: Step, new: Any) -> None:
    if isinstance(step, int) and step == len(holder):
        holder.append(new)
    elif isinstance(step, int) and step > len(holder):
        raise ValueError("list index out of order")
    else:
        holder[step] = new
