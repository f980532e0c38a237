"""Verifies a callback with the standardwebhooks package. Fails if it is not valid."""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

callback = json.load(sys.stdin)
try:
    event = Webhook(callback["secret"]).verify(callback["body"], callback["headers"])
except WebhookVerificationError as error:
    sys.exit(f"not verified: {error}")
print(event["type"])
