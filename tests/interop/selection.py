# SPDX-License-Identifier: MIT
"""What of a run is played."""
import os
import sys


def chosen(variable, names):
    """The names that the environment variable lists; all, if it is not set."""
    wanted = os.environ.get(variable, "").split()
    unknown = [name for name in wanted if name not in names]
    if unknown:
        sys.exit(f"{variable}: no such {unknown}; there are {list(names)}")
    return wanted or list(names)
