"""What the document cannot say, and this test knows."""

import schemathesis
from schemathesis.generation import GenerationMode


@schemathesis.hook
def before_call(context, case, kwargs):
    """Lets well-formed requests get to where something happens."""
    if case.operation.path.endswith("/stream"):
        # OpenAPI has no word for the Accept header of one operation.
        case.headers["Accept"] = "text/event-stream"
    if case.operation.path.endswith("/environments") and isinstance(case.body, dict):
        # No index on the Internet is asked for names that somebody made up.
        packages = case.body.get("packages")
        if isinstance(packages, list) and packages and all(isinstance(name, str) for name in packages):
            case.body["packages"] = ["six"]
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if not isinstance(case.body, dict):
        return
    for request in case.body.get("requests", [case.body]):
        # Which languages a host has is not a matter of the document.
        # A build of packages is left alone: most made-up languages are none, which bounds the builds.
        if "language" in request and "name" not in request:
            request["language"] = "bash"
            request.pop("version", None)
