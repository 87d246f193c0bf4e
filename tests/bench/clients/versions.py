# SPDX-License-Identifier: MIT
"""The package for a language, and another version of it, which OLD_GO names for Go."""
from __future__ import annotations

import os


def versions(language: str) -> dict[str, str]:
    """Folders, by "ours" and "old"."""
    old = os.environ.get(f"OLD_{language.upper()}")
    return {"ours": f"api/clients/{language}"} | ({"old": old} if old else {})
