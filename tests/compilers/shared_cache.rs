//! The other half of poisoning: where two executions do share something that can be written to, the
//! first one does change what the second one does. So the poison is real, and what stops it is that
//! nothing is shared.

use std::path::Path;

use sandbox::store::{Store, StoreError};
use sandbox::{Report, Request, RequestBuilder, Sandbox, Status, Volume, VolumeAccess};
use sandbox_tests::backend::execute;

use crate::attack::take_turn;

/// A directory of the host that a program may write to, which no sandbox has unless its caller says so.
fn writable(request: RequestBuilder, host: &Path, inside: &str) -> RequestBuilder {
    request.volume(Volume::new(host, Path::new(inside), VolumeAccess::ReadWrite).unwrap())
}

fn run(sandbox: &Sandbox, request: RequestBuilder) -> Option<Report> {
    let report = execute("shared_cache", sandbox, request)?;
    assert_eq!(report.status, Status::Completed, "{}", report.stderr);
    Some(report)
}

/// A language whose programs use a library that is made once.
const RECIPE: &str = r#"
name = "toy"
extensions = ["toy"]
entry = "main.toy"
[toolchain]
programs = ["/bin/sh"]
version = { args = ["-c", "echo 1.0"] }
[layers.library]
about = "a library"
command = ["/bin/sh", "-c", "mkdir layer; echo 'greet() {{ echo hello; }}' > layer/library"]
stages = ["run"]
[run]
command = ["{program}", "{entry}"]
[run.environment]
LAYER = "{layer:library}"
[hello]
code = ""
expected = ""
"#;

const POISON: &str = "echo 'greet() { echo poisoned; }' >/layer/library";

#[test]
fn a_layer_that_could_be_written_would_change_every_later_program() {
    let _turn = take_turn();
    let home = tempfile::tempdir().unwrap();
    let recipe = home.path().join("recipes/toy");
    std::fs::create_dir_all(&recipe).unwrap();
    std::fs::write(recipe.join("runtime.toml"), RECIPE).unwrap();
    let builder = Sandbox::builder().runtimes_directory(home.path().join("recipes"));
    let store = home.path().join("store");
    let sandbox = builder.store_directory(store.clone()).build().unwrap();
    let greet = || Request::builder("toy").code(". $LAYER/library; greet");
    assert_eq!(run(&sandbox, greet()).unwrap().stdout, "hello\n");
    let store = Store::open_in(&store, Store::DEFAULT_BOUND).unwrap();
    let key = store.layers().list().unwrap().pop().expect("the library is a layer").key;
    store.layers().verify(&key).unwrap();

    let layer = store.path().join("layers").join(key.to_string()).join("tree");
    let poison = || Request::builder("bash").code(POISON);
    let report = execute("no_layer", &sandbox, poison()).unwrap();
    assert_eq!(report.status, Status::RuntimeError, "there is no such place");
    run(&sandbox, writable(poison(), &layer, "/layer")).unwrap();
    assert_eq!(run(&sandbox, greet()).unwrap().stdout, "poisoned\n");
    let verified = store.layers().verify(&key);
    assert!(matches!(verified, Err(StoreError::Damaged { .. })), "{verified:?}");
}

/// Writes a compiled form of a module of the standard library that does something else, where Python
/// looks for it, and marks it as one that need not be compared with its source.
const POISONED_MODULE: &str = r"
import importlib.util, importlib._bootstrap_external as loader, os
source = importlib.util.find_spec('colorsys').origin
cache = importlib.util.cache_from_source(source)
try:
    os.makedirs(os.path.dirname(cache), exist_ok=True)
    with open(cache, 'wb') as file:
        code = compile('print(\'poisoned\')', source, 'exec')
        file.write(loader._code_to_hash_pyc(code, b'0' * 8, False))
except OSError as error:
    print(type(error).__name__)
";

#[test]
fn a_python_cache_that_is_shared_is_poisoned_and_the_one_of_a_sandbox_is_not() {
    let _turn = take_turn();
    let sandbox = Sandbox::builder().build().unwrap();
    let shared = tempfile::tempdir().unwrap();
    let python = |code: &str| Request::builder("python").code(code);
    let with_shared = |code: &str| {
        let request = python(code).env("PYTHONPYCACHEPREFIX", "/cache");
        writable(request, shared.path(), "/cache")
    };
    let Some(report) = run(&sandbox, with_shared(POISONED_MODULE)) else { return };
    assert_eq!(report.stdout, "");
    let report = run(&sandbox, with_shared("import colorsys")).unwrap();
    assert_eq!(report.stdout, "poisoned\n");

    let report = run(&sandbox, python(POISONED_MODULE)).unwrap();
    assert_eq!(report.stdout, "OSError\n", "the library's own cache is read-only");
    let report = run(&sandbox, python("import colorsys")).unwrap();
    assert_eq!(report.stdout, "");
}
