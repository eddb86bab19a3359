"""Attributes that are computed when they are first read.

Absent: a lock, so that two threads may both compute one; what they make is the same.
"""


class kept:
    """As ``functools.cached_property``, without the lock that it has before Python 3.12: a child of ``fork`` would wait
    for it if another thread of its parent computed the attribute."""

    def __init__(self, make):
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        made = instance.__dict__[self._name] = self._make(instance)
        return made
