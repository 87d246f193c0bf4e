# SPDX-License-Identifier: MIT
"""Our token and certificate for the servers, and the CAs that we trust."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from typing import TYPE_CHECKING, TypeAlias

from ._wire import is_word

if TYPE_CHECKING:
    import ssl

File: TypeAlias = str | os.PathLike[str]
_LONGEST_TOKEN = 4096  # it is sent in a header as it is


# Reading the certificates takes longer than acquiring a lock.
@functools.cache
def _usual_context() -> ssl.SSLContext:
    return _new_context(None)


def _new_context(ca_file: File | None) -> ssl.SSLContext:
    import ssl  # noqa: PLC0415 - without TLS nobody waits for it

    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _no_passphrase() -> str:
    """Without this, ssl would ask on the terminal."""
    return ""


def _context(
    ca_file: File | None, cert_file: File | None, key_file: File | None
) -> ssl.SSLContext:
    if key_file and not cert_file:
        raise ValueError("key_file without cert_file: name its certificate")
    if not ca_file and not cert_file:
        return _usual_context()
    context = _new_context(ca_file)
    if cert_file:
        context.load_cert_chain(cert_file, key_file, _no_passphrase)
    return context


def _checked(text: str, where: str) -> str:
    """Raises ValueError, which never contains the token itself."""
    if not text:
        raise ValueError(f"{where} is empty")
    if "\n" in text:
        raise ValueError(f"{where} has more than one line")
    if len(text) > _LONGEST_TOKEN or not is_word(text):
        raise ValueError(
            f"{where} is not 1 to 4096 ASCII letters, digits and signs"
        )
    return text


def _read(file: File) -> str:
    with open(file, encoding="utf-8", errors="replace") as opened:
        text = opened.read()
    text = text.removesuffix("\n").removesuffix("\r")
    return _checked(text, f"the token file {os.fspath(file)}")


class Identity:
    """A bearer token, which may be replaced, and the files for TLS. Those that
    are omitted come from the environment."""

    def __init__(
        self,
        *,
        auth_token: str | None,
        auth_token_file: File | None,
        ca_file: File | None,
        cert_file: File | None,
        key_file: File | None,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        if ssl_context and (ca_file or cert_file or key_file):
            raise ValueError("give either an ssl_context or files")
        if auth_token is None and auth_token_file is None:
            auth_token = os.environ.get("REDLOCKD_AUTH_TOKEN") or None
            auth_token_file = os.environ.get("REDLOCKD_AUTH_TOKEN_FILE") or None
        if auth_token is not None and auth_token_file is not None:
            raise ValueError("give either a token or a file that has it")
        self._file = auth_token_file
        self._token = ""
        if auth_token_file is not None:
            self._token = _read(auth_token_file)
        elif auth_token is not None:
            self._token = _checked(auth_token, "the token")
        if not (ca_file or cert_file or key_file):
            ca_file = os.environ.get("REDLOCKD_CACERT")
            cert_file = os.environ.get("REDLOCKD_CERT")
            key_file = os.environ.get("REDLOCKD_KEY")
        self._files = ca_file, cert_file, key_file
        self._context = ssl_context
        if self._context is None and any(self._files):
            self._context = _context(*self._files)  # raises early

    @property
    def context(self) -> ssl.SSLContext:
        return self._context or _usual_context()

    @property
    def authorization(self) -> str:
        """The header's text; "": we have no token."""
        return f"Bearer {self._token}" if self._token else ""

    def refresh(self, refused: str) -> bool:
        """After a 401: reads the file again. Whether the token now differs from
        the refused header: another thread may have read it first. A file that
        cannot be read, or is half written, changes nothing."""
        if self._file is None:
            return False
        with contextlib.suppress(OSError, ValueError):
            self._token = _read(self._file)
        return self.authorization != refused


def is_untrusted(error: BaseException) -> bool:
    """Whether a connection failed because of the server's certificate."""
    ssl = sys.modules.get("ssl")
    return ssl is not None and isinstance(error, ssl.SSLCertVerificationError)
