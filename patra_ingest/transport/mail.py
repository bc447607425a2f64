"""A sink that mails each message: `smtp://USER:PASSWORD@HOST:587/?from=A&to=B,C`, or `smtps://`.

A password only goes over an encrypted line; a mail without one may also go to a relay next door.
"""

import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import orjson

from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.outbox_queue import Message
from patra_ingest.transport.delivery import Answer, Published, refused

_SECONDS = 20.0
_PORTS = {"smtp": 587, "smtps": 465}
_HOW = "Give smtp://USER:PASSWORD@HOST:587/?from=ADDRESS&to=ADDRESS."


class MailSink:
    """One mail server, one sender, some receivers."""

    def __init__(self, address: str) -> None:
        self._url = _parsed(address)
        query = parse_qs(self._url.query)
        self._sender = query.get("from", [""])[0]
        self._receivers = [one for part in query.get("to", []) for one in part.split(",") if one]
        if not self._sender or not self._receivers:
            raise PersonMustAct("The mail address lacks from= or to=.", _HOW)
        self.shown = f"{self._url.scheme}://{self._url.hostname}"

    def publish(self, messages: Sequence[Message]) -> list[Answer]:
        """Send one mail for each message, over one connection."""
        try:
            with self._connect() as server:
                return [self._send(server, message) for message in messages]
        except (OSError, smtplib.SMTPException) as error:
            # What the server says may repeat our user name: its kind is enough.
            why = f"{self.shown} did not take the mail: {type(error).__name__}"
            return [refused("MAIL", why, of_all=True)] * len(messages)

    def _connect(self) -> smtplib.SMTP:
        host, port = self._url.hostname or "", self._url.port or _PORTS[self._url.scheme]
        tls = ssl.create_default_context()
        if self._url.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=_SECONDS, context=tls)
        else:
            server = smtplib.SMTP(host, port, timeout=_SECONDS)
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=tls)
            elif self._url.password:
                server.close()
                raise smtplib.SMTPNotSupportedError("no encryption, and there is a password")
        if self._url.username:
            server.login(unquote(self._url.username), unquote(self._url.password or ""))
        return server

    def _send(self, server: smtplib.SMTP, message: Message) -> Answer:
        told = orjson.loads(message.payload)
        server.send_message(self._mail(message, told))
        return Published(message.dedup_key)

    def _mail(self, message: Message, told: dict[str, Any]) -> EmailMessage:
        mail = EmailMessage()
        mail["From"], mail["To"] = self._sender, ", ".join(self._receivers)
        mail["Subject"] = " ".join(f"[patra] {told['level']}: {told['key']}".split())[:200]
        mail["Message-ID"] = f"<{message.dedup_key}@patra-ingest>"  # the same alert, the same mail
        mail.set_content(f"{told['what']}\n\n{told['remedy']}\n")
        return mail

    def close(self) -> None:
        """Nothing is held between two calls."""


def _parsed(address: str) -> SplitResult:
    try:
        url = urlsplit(address)
        fits = url.scheme in _PORTS and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        fits = False
    if not fits:
        raise PersonMustAct("The mail server's address is no URL.", _HOW)
    return url
