"""The server's own source of chance, for names, addresses and jitter.

Not the one that the `random` module shares: a program that holds a server may seed that, and would then get
the same names twice.
"""

from __future__ import annotations

import random

CHANCE = random.Random()
