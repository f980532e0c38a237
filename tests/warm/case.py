"""One program that is run cold and warm."""
from dataclasses import dataclass, field


@dataclass
class Case:
    name: str
    source: str
    args: tuple = ()
    stdin: bytes = b""
    # What to await on standard output, and then bytes to write to its input or a signal to send.
    steps: tuple = ()
    entry: str = ""
    others: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)
    wait: float = 0.0
    may_differ: tuple = ()
    files: dict = field(default_factory=dict)

    def with_entry(self, default):
        """The same case with its files complete."""
        self.entry = self.entry or default
        self.files = {self.entry: self.source, **self.others}
        return self
