"""Planting a fault into the running process, by giving the functions that it changes other code.

Whoever holds such a function, in a table of handlers say, holds the fault. The process is good for nothing else afterwards: it
is a forked one that ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from tests.mutants.mutant import ROOT, Mutant


class CannotPlantHere(Exception):
    """The fault changes more than the bodies of functions: what is made when a module is loaded was made without it."""


def plant_here(mutant: Mutant) -> None:
    """Put the fault into this process. Raises `CannotPlantHere`."""
    module = import_module(f"quarterdeck.{mutant.file.removesuffix('.py').replace('/', '.')}")
    sound = compile((ROOT / mutant.file).read_text(), mutant.file, "exec", dont_inherit=True)
    changed = compile(mutant.changed_source(), mutant.file, "exec", dont_inherit=True)
    _swap(sound, changed, vars(module))


def _swap(sound: CodeType, changed: CodeType, namespace: Mapping[str, Any]) -> None:
    """Give the functions of a module or class, whose body this code is, the changed code."""
    if _essence(sound, with_functions=False) != _essence(changed, with_functions=False):
        raise CannotPlantHere(sound.co_name)
    for before, after in zip(_inner(sound), _inner(changed), strict=True):
        if _essence(before) == _essence(after):
            continue
        target = namespace.get(before.co_name)
        target = getattr(target, "fget", None) or getattr(target, "__func__", None) or target
        if isinstance(target, type):
            _swap(before, after, vars(target))
        elif isinstance(target, FunctionType) and target.__code__.co_freevars == after.co_freevars:
            target.__code__ = after
        else:
            raise CannotPlantHere(before.co_qualname)


def _inner(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _essence(code: CodeType, *, with_functions: bool = True) -> tuple[object, ...]:
    """All of it but where it stands."""
    constants = [
        (_essence(const) if with_functions else const.co_name) if isinstance(const, CodeType) else (type(const), const)
        for const in code.co_consts
    ]
    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, *constants)
