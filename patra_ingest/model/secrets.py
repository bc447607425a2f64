"""Which names carry secrets: what they hold is never written down."""

import re

# Names are compared in lower case and without punctuation: api_key, apiKey and X-API-Key are one.
# Page tokens (resumptionToken, pageToken, …) are evidence, not secrets, and stay.
_NAMES = frozenset({"authorization", "cookie", "credentials", "jwt", "passwd", "pwd"})
_ENDS = (
    *("accesskey", "accesskeyid", "apikey", "authkey", "keypairid", "privatekey", "secretkey"),
    *("subscriptionkey", "accesstoken", "apitoken", "authtoken", "bearertoken", "clienttoken"),
    *("csrftoken", "idtoken", "insttoken", "refreshtoken", "securitytoken", "sessiontoken"),
    *("usertoken", "credential", "passphrase", "password", "secret", "sessionid", "signature"),
)
# Secrets as `?key=…`, but ordinary words as `"key": …` in a body.
_PARAMETERS = frozenset({"auth", "key", "pass", "sid", "sig", "token"})


def is_secret_name(name: str, as_parameter: bool) -> bool:
    """Whether a value under this name must be hidden; `as_parameter`: it stands in a URL."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain in _NAMES or plain.endswith(_ENDS) or (as_parameter and plain in _PARAMETERS)
