"""How each runtime is started, cold and warm: what the recipes say, for use without a sandbox."""
import dataclasses
import os
import subprocess
import tempfile
from pathlib import Path

RUNTIMES = Path(__file__).resolve().parents[2] / "runtimes"
BASE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
MEMORY_MB = "256"


class Python:
    def __init__(self, scratch, options):
        self.program = options.program or "/usr/bin/python3"
        self.fork = options.fork
        self.layer = os.path.join(scratch, "layer")
        os.mkdir(self.layer)
        Path(self.layer, "usercustomize.py").write_text((RUNTIMES / "python/warm.py").read_text())

    def cases(self):
        from cases_python import CASES
        return [case.with_entry("main.py") for case in CASES]

    def environment(self, case):
        own = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        return {**BASE, **own, **(case.environment if case else {})}

    def cold(self, case):
        return [self.program, case.entry, *case.args]

    def warm(self, directory):
        environment = {**self.environment(None), "PYTHONPATH": self.layer}
        if self.fork:
            environment["SANDBOX_WARM"] = "fork"
        return [self.program, "main.py"], environment


class JavaScript:
    options, fork = (), False

    def __init__(self, scratch, options):
        self.program = options.program or "/usr/bin/node"
        self.layer = os.path.join(scratch, "layer")
        os.mkdir(self.layer)
        Path(self.layer, "warm.cjs").write_text((RUNTIMES / "javascript/warm.cjs").read_text())

    def cases(self):
        from cases_javascript import CASES
        return [case.with_entry("main.js") for case in CASES]

    def environment(self, case):
        return {**BASE, **(case.environment if case else {})}

    def command(self, entry):
        return [self.program, "--experimental-detect-module", *self.options,
                f"--max-old-space-size={MEMORY_MB}", entry]

    def cold(self, case):
        return [*self.command(case.entry), *case.args]

    def warm(self, directory):
        return self.command("main.js"), {**BASE, "NODE_OPTIONS": f"--require {self.layer}/warm.cjs"}


class TypeScript(JavaScript):
    """The run stage, of programs that are given as the compiler would leave them."""

    options = ("--enable-source-maps",)

    def __init__(self, scratch, options):
        super().__init__(scratch, options)
        self.work = os.path.join(os.path.realpath(scratch), "work")

    def cases(self):
        from cases_typescript import CASES
        return [case.with_entry("main.ts") for case in CASES]

    def cold(self, case):
        script = (RUNTIMES / "typescript/run.sh").read_text().replace("/work", self.work)
        script = script.replace("/usr/bin/node", self.program)
        return ["/bin/sh", "-c", script, "run", MEMORY_MB, case.entry, *case.args]


class Java:
    """The run stage: what is compared are programs that were compiled before."""

    fork = False
    script, warm_script = "run.sh", "warm-run.sh"

    def __init__(self, scratch, options):
        self.root = options.program or "/usr/lib/jvm/java-17-openjdk-amd64"
        self.work = os.path.join(os.path.realpath(scratch), "work")
        self.scratch = os.path.join(scratch, "made")
        self.layer = os.path.join(self.scratch, "layer")
        os.mkdir(self.scratch)
        texts = [self.text(name) for name in ("WarmJob.java", "WarmRun.java", "WarmCompile.java", "Sample.java")]
        prepare = ["/bin/sh", "-c", self.text("warm-prepare.sh"), "prepare", self.root, *texts]
        subprocess.run(prepare, cwd=self.scratch, check=True)
        compiler = ["/bin/sh", "-c", self.text("prepare.sh"), "prepare", f"{self.root}/bin/javac", texts[-1]]
        old = os.path.join(self.scratch, "javac")
        os.mkdir(old)
        subprocess.run(compiler, cwd=old, check=True)
        self.cold_layer = os.path.join(old, "layer")

    def text(self, name):
        """A file of the recipe, for the directory that stands for /work here."""
        return (RUNTIMES / "java" / name).read_text().replace("/work", self.work)

    def cases(self):
        from cases_java import RUN
        return [self.compiled(case.with_entry("Main.java")) for case in RUN]

    def compiled(self, case):
        place = Path(tempfile.mkdtemp(dir=self.scratch))
        for name, text in case.files.items():
            place.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            place.joinpath(name).write_text(text)
        sources = [name for name in case.files if name.endswith(".java")]
        command = ["/bin/sh", "-c", self.text("compile.sh"), "compile", f"{self.root}/bin/javac", case.entry, *sources]
        subprocess.run(command, cwd=place, env={**BASE, "LAYER": self.cold_layer}, check=True)
        made = place.joinpath(".program").rglob("*")
        case.files.update({str(path.relative_to(place)): path.read_bytes() for path in made if path.is_file()})
        return case

    def environment(self, case):
        return {**BASE, **(case.environment if case else {})}

    def cold(self, case):
        return ["/bin/sh", "-c", self.text("run.sh"), "run", self.root, MEMORY_MB, *case.args]

    def warm(self, directory):
        command = ["/bin/sh", "-c", self.text("warm-run.sh"), "warm", self.root, MEMORY_MB]
        return command, {**BASE, "LAYER": self.layer}


class JavaCompile(Java):
    """The compile stage: sources in, messages and .program out."""

    def cases(self):
        from cases_java import COMPILE, RUN
        cases = [case.with_entry("Main.java") for case in COMPILE + RUN]
        return [dataclasses.replace(case, steps=(), stdin=b"") for case in cases]

    def environment(self, case):
        return {**BASE, "LAYER": self.cold_layer}

    def cold(self, case):
        sources = [name for name in case.files if name.endswith(".java")]
        return ["/bin/sh", "-c", self.text("compile.sh"), "compile", f"{self.root}/bin/javac", case.entry, *sources]

    def warm(self, directory):
        command = ["/bin/sh", "-c", self.text("warm-compile.sh"), "warm", self.root]
        return command, {**BASE, "LAYER": self.layer}


STARTS = {
    "python": Python, "javascript": JavaScript, "typescript": TypeScript,
    "java": Java, "java-compile": JavaCompile,
}
