"""Naive dedup, order and ring; traces of steps with times."""


def run(machine, entry):
    """Feeds every step of a trace; the outputs of each step, and the counters at the end."""
    raise NotImplementedError


class Dedup:
    pass


class Order:
    pass


class Ring:
    pass
