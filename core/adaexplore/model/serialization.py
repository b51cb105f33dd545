"""Model ↔ plain JSON data, by cattrs: for the store, the events and the worker's replies."""

from __future__ import annotations

import json
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import cattrs

from adaexplore.model.task import Ref, TensorSpec

T = TypeVar("T")


def _structure_argument(value: Any, _: Any) -> Any:
    if isinstance(value, dict):
        return Ref(value["name"])
    if isinstance(value, (list, tuple)):
        return tuple(_structure_argument(item, _) for item in value)
    return value


def _structure_scalar(value: Any, _: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _structure_spec_or_literal(value: Any, _: Any) -> Any:
    if isinstance(value, dict):
        return TensorSpec(value["dtype"], tuple(value["shape"]))
    return value


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else ()


def _is_scalar_union(kind: Any) -> bool:
    members = [m for m in _members(kind) if get_origin(m) is not tuple]
    return bool(members) and len(members) > 1 and all(m in (int, float, bool, str, type(None)) for m in members)


def _make_converter() -> cattrs.Converter:
    # Hooks go by the members of a union: this module's unions hold scalars, and one class at most.
    converter = cattrs.Converter()
    converter.register_structure_hook_func(_is_scalar_union, _structure_scalar)
    converter.register_structure_hook_func(lambda kind: Ref in _members(kind), _structure_argument)
    converter.register_structure_hook_func(lambda kind: TensorSpec in _members(kind), _structure_spec_or_literal)
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    return converter


_CONVERTER = _make_converter()


def to_data(value: object) -> Any:
    """Give ``value`` as dicts, lists, strings, numbers, booleans and None."""
    return _CONVERTER.unstructure(value)


def from_data(data: Any, kind: type[T]) -> T:
    """Build a ``kind`` from what :func:`to_data` gave.

    Raises:
        cattrs.BaseValidationError: The data does not fit.
    """
    return _CONVERTER.structure(data, kind)


def to_json(value: object) -> str:
    """Give ``value`` as one line of JSON."""
    return json.dumps(to_data(value), allow_nan=True)


def from_json(text: str, kind: type[T]) -> T:
    """Build a ``kind`` from JSON text."""
    return from_data(json.loads(text), kind)
