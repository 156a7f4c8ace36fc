"""Members of base classes that a class may set."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Default(Generic[T]):
    """The value of a member that a component's class does not set; without a value the class must set it.

    A class variable, a dataclass field, a property or an assignment to the instance takes its place. It is no
    default of a dataclass field: a field without a value stays required.
    """

    def __init__(self, *value: T) -> None:
        self._value = value

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, component: object, owner: type | None = None) -> T:
        if component is None or not self._value:
            raise AttributeError(f"{getattr(owner, '__name__', 'a component')} has no {self._name}")
        return self._value[0]
