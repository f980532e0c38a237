"""Hooks for Schemathesis: what the OpenAPI document cannot express."""

import io
import tarfile

import schemathesis
from hypothesis import strategies
from schemathesis.generation import GenerationMode

# The only packages that are built. Others would take seconds each, and would query the package index for random names.
BUILT = {"name": "plots", "language": "python", "packages": ["six"]}


def archive(contents):
    """A tar archive with these files."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for number, content in enumerate(contents):
            entry = tarfile.TarInfo(f"file-{number}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()


schemathesis.openapi.media_type(
    "application/x-tar", strategies.lists(strategies.binary(max_size=64), max_size=4).map(archive)
)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Changes valid requests so that they reach the handlers."""
    if case.operation.path.endswith("/stream"):
        # OpenAPI cannot describe an Accept header.
        case.headers["Accept"] = "text/event-stream"
    if not isinstance(case.body, dict) or case.body == BUILT:
        return
    if case.operation.path.endswith("/environments") and case.body.get("language") == "python":
        case.body["language"] = "bash"
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    for request in case.body.get("requests", [case.body]):
        # Nobody would send the standard input.
        request.pop("stdin_stream", None)
        # The directories of the host depend on it too.
        request.pop("volumes", None)
        # The installed languages depend on the host.
        if "language" in request:
            request["language"] = "bash"
            request.pop("version", None)
