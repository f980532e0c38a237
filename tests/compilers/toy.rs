//! A compiler of our own in a home of its own, for what is about the cache and not about a language.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::MutexGuard;

use sandbox::store::Store;
use sandbox::{Report, Request, RequestBuilder, Sandbox, SandboxBuilder, Status};
use sandbox_tests::backend::show;
use tempfile::TempDir;

use crate::attack::take_turn;

/// A compiler, its recipe, and a store. Its holder has exclusive use.
pub(crate) struct Toy {
    home: TempDir,
    _turn: MutexGuard<'static, ()>,
}

const RECIPE: &str = r#"
name = "toy"
extensions = ["toy"]
entry = "main.toy"
[toolchain]
programs = ["HOME/toolchain/bin/toyc"]
version = { args = ["--version"] }
[compile]
command = ["{program}", "{sources}"]
artefacts = ["program"]
[run]
command = ["./program"]
[hello]
code = ""
expected = ""
"#;

/// What it makes prints what it was made from, and when: no two programs that it makes are the same. It
/// says so while compiling, and a source can have it fail.
const COMPILER: &str = r#"#!/bin/sh
[ "$1" = --version ] && exec echo 1.0
echo "compiling $*" >&2
grep -q "fail to compile" "$@" && exit 3
grep -q "never end" "$@" && sleep 1000
{
    printf '#!/bin/sh\ncat <<"END"\n'
    echo "made by MAKER at $(date +%s.%N)"
    grep -H '' "$@"
    echo END
} >program
chmod +x program
"#;

impl Toy {
    pub(crate) fn new() -> Self {
        let toy = Self { _turn: take_turn(), home: tempfile::tempdir().unwrap() };
        let recipe = toy.path("recipes/toy");
        std::fs::create_dir_all(&recipe).unwrap();
        let text = RECIPE.replace("HOME", toy.home.path().to_str().unwrap());
        std::fs::write(recipe.join("runtime.toml"), text).unwrap();
        std::fs::create_dir_all(toy.path("toolchain/bin")).unwrap();
        toy.install("first");
        toy
    }

    /// Replaces the compiler, as an update does.
    pub(crate) fn install(&self, maker: &str) {
        let new = self.path("toolchain/bin/new");
        std::fs::write(&new, COMPILER.replace("MAKER", maker)).unwrap();
        std::fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::rename(new, self.path("toolchain/bin/toyc")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn builder(&self) -> SandboxBuilder {
        let builder = Sandbox::builder().runtimes_directory(self.path("recipes"));
        builder.store_directory(self.path("store"))
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        self.builder().build().unwrap()
    }

    /// How many programs are kept.
    pub(crate) fn kept(&self) -> u64 {
        let store = Store::open_in(&self.path("store"), Store::DEFAULT_BOUND).unwrap();
        store.compiled().usage().unwrap().entries
    }

    /// The files in which they are kept.
    pub(crate) fn entries(&self) -> Vec<PathBuf> {
        let listed =
            |path: PathBuf| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        listed(self.path("store/compiled")).flat_map(listed).collect()
    }
}

pub(crate) fn toy(code: &str) -> RequestBuilder {
    Request::builder("toy").code(code)
}

/// Executes a request that has to be taken.
pub(crate) fn run(sandbox: &Sandbox, request: RequestBuilder) -> Report {
    let report = sandbox.execute(request.build().unwrap()).unwrap();
    show(&report);
    report
}

/// Executes a program that has to compile. Says what it printed, and whether it had been compiled before.
pub(crate) fn compiled(sandbox: &Sandbox, request: RequestBuilder) -> (String, bool) {
    let report = run(sandbox, request);
    assert_eq!(report.status, Status::Completed, "{:?} {}", report.error, report.output);
    assert!(
        report.stages[0].output.contains("compiling main.toy"),
        "the compiler's words are kept"
    );
    (report.stdout, report.stages[0].cached)
}
