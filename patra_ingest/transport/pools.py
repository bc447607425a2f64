"""Connection pools: one for each way to travel, opened when the first request takes it."""

import logging
import ssl
import threading
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec

import httpx

from patra_ingest.errors import RequestRejected
from patra_ingest.transport.messages import Options
from patra_ingest.transport.redact import redact_url

_log = logging.getLogger(__name__)
_Way = tuple[bool, str | None, bool]  # verified, through which proxy, as HTTP/2
# A proxy named in the environment is for the world outside, never for the sandbox beside us.
_DIRECT: Mapping[str, httpx.BaseTransport | None] = {
    "all://127.0.0.1": None,
    "all://localhost": None,
    "all://[::1]": None,
}


@cache
def _trusted(http2: bool) -> ssl.SSLContext:
    """Return whom we trust: read once per process, which takes as long as a few pages.

    Connections write what they speak into it, hence one for each way of speaking.
    """
    return httpx.create_ssl_context()


class _NoCookies(httpx.Cookies):
    """Keeps none, and does not even look for them."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Leave the cookies of an answer where they are."""


_NONE = _NoCookies()


class _Forgetful(httpx.Client):
    """Each request says all there is to say; a cookie would be a part that nobody recorded."""

    @property
    def cookies(self) -> httpx.Cookies:
        """None, ever."""
        return _NONE

    @cookies.setter
    def cookies(self, cookies: object) -> None:
        raise AttributeError("the client of a pool keeps no cookies")


class Pools:
    """The open connections of a process, shared by its threads."""

    def __init__(self, user_agent: str) -> None:
        self._user_agent = user_agent
        self._clients: dict[_Way, httpx.Client] = {}
        self._lock = threading.Lock()
        self._has_http2 = find_spec("h2") is not None
        self._has_told = False

    def client(self, options: Options) -> httpx.Client:
        """Return the pool for these options; RequestRejected if their proxy cannot be used."""
        with self._lock:
            way = (options.verify_tls, options.proxy, self._takes_http2(options))
            if way not in self._clients:
                self._clients[way] = self._open(*way)
            return self._clients[way]

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for client in self._clients.values():
                client.close()

    def _takes_http2(self, options: Options) -> bool:
        if options.http2 and not self._has_http2 and not self._has_told:
            self._has_told = True
            _log.warning("http2 is asked for, but the package h2 is missing: HTTP/1.1 is spoken")
        return options.http2 and self._has_http2

    def _open(self, verify_tls: bool, proxy: str | None, http2: bool) -> httpx.Client:
        try:
            return _Forgetful(
                headers={"User-Agent": self._user_agent},
                follow_redirects=False,
                verify=_trusted(http2) if verify_tls else False,
                http2=http2,
                proxy=proxy,
                # Longer than the pause between two requests to a slow source: TLS once, not often.
                limits=httpx.Limits(max_keepalive_connections=50, keepalive_expiry=30.0),
                mounts=None if proxy else _DIRECT,
            )
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            raise RequestRejected(
                f"http.proxy {redact_url(proxy or '')} cannot be used ({type(error).__name__}): "
                "write http://host:port"
            ) from None
