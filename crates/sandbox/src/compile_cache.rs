//! The compile cache: results of compile stages, keyed by everything that went into them.
//!
//! A compile stage sees only its plan: command, variables, files, toolchain and layers. Equal plans give equal results, so
//! the second one need not run. User code can influence only the inputs of an entry, and the inputs are its key.

use std::sync::Arc;

use sandbox_core::{Artefacts, Ending, Isolation, Observer, StageOutcome, StagePlan, StreamKind};

use crate::runtime::Runtime;
use crate::store::{Compiled, Key, KeyBuilder};

/// The key of a compile stage. Limits are not part of it: they decide whether there is a result, not which result.
pub(crate) fn key(
    runtime: &Runtime,
    isolation: Isolation,
    plan: &StagePlan,
    owner: Option<&str>,
) -> Key {
    let mut key = KeyBuilder::new("compile")
        .part("isolation", isolation.to_string())
        .part("toolchain", runtime.identity_with_libraries());
    if let Some(owner) = owner {
        key = key.part("owner", owner);
    }
    for argument in &plan.process.command {
        key = key.part("argument", argument);
    }
    for (name, value) in &plan.process.env {
        key = key.part("variable", name).part("value", value);
    }
    for file in &plan.sandbox.files {
        key = key.part("file", file.path.as_str()).part("contents", &file.contents);
        key = key.part("executable", [u8::from(file.executable)]);
    }
    for tree in &plan.sandbox.trees {
        // The directory of a layer is named by the layer's key, so its path stands for its contents.
        key = key.part("tree", tree.host.as_os_str().as_encoded_bytes());
        key = key.part("inside", tree.inside.as_os_str().as_encoded_bytes());
    }
    for glob in &plan.collect.globs {
        key = key.part("artefact", glob.to_string());
    }
    key.finish()
}

/// The entry to cache for a stage, if it succeeded completely. Moves the files out of the outcome.
pub(crate) fn keep(key: &Key, outcome: &mut StageOutcome) -> Option<Arc<Compiled>> {
    let whole = !outcome.stdout_truncated && !outcome.stderr_truncated;
    let good = outcome.ending == Ending::Exited(0) && !outcome.files.is_empty();
    (good && whole && outcome.skipped.is_empty()).then(|| {
        let files = std::mem::take(&mut outcome.files);
        Arc::new(Compiled {
            artefacts: Arc::new(Artefacts::new(Some(key.to_string()), files)),
            stdout: outcome.stdout.clone(),
            stderr: outcome.stderr.clone(),
            output: outcome.output.clone(),
        })
    })
}

/// Whether a cached result is within the limits of this plan, which can be tighter.
pub(crate) fn fits(compiled: &Compiled, plan: &StagePlan) -> bool {
    let files = &compiled.artefacts.files;
    let total: u64 = files.iter().map(|file| file.contents.len() as u64).sum();
    let printed = compiled.stdout.len() + compiled.stderr.len();
    total <= plan.collect.total.as_u64() && printed as u64 <= plan.sandbox.limits.output().as_u64()
}

/// The outcome as if the stage had run. Sends the compiler's output again.
pub(crate) fn replay(compiled: &Compiled, observer: &mut dyn Observer) -> StageOutcome {
    let Compiled { stdout, stderr, output, .. } = compiled;
    for (stream, bytes) in [(StreamKind::Stdout, stdout), (StreamKind::Stderr, stderr)] {
        if !bytes.is_empty() {
            observer.output(stream, bytes);
        }
    }
    StageOutcome {
        stdout: stdout.clone(),
        stderr: stderr.clone(),
        output: output.clone(),
        ..StageOutcome::new(Ending::Exited(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{self, StageContext};
    use crate::runtime::tests::unprobed;
    use sandbox_core::{ByteSize, Limits, Request, RequestBuilder, Tree};
    use std::collections::BTreeSet;

    fn key_of(builder: RequestBuilder, context: StageContext) -> Key {
        let runtime = unprobed("c");
        let request = builder.build().unwrap();
        let plan = plan::compile(&runtime, &request, context).unwrap();
        key(&runtime, Isolation::Native, &plan, request.compile_cache_owner())
    }

    #[test]
    fn everything_a_compiler_sees_is_in_the_key_and_nothing_else() {
        let plain = || Request::builder("c").code("int main;").file("a.h", "1");
        let none = StageContext::default;
        let base = key_of(plain(), none());
        let limits = Limits::compile().with_memory(ByteSize::mib(100)).unwrap();
        for same in
            [plain(), plain().stdin("x").args(["y"]).env("A", "b"), plain().compile_limits(limits)]
        {
            assert_eq!(key_of(same, none()), base);
        }
        let tree = |host: &str| StageContext {
            trees: vec![Tree { host: host.into(), inside: "/opt/x".into(), copy_on_write: false }],
            ..StageContext::default()
        };
        let variable = StageContext {
            variables: [("A".to_owned(), "b".to_owned())].into(),
            ..StageContext::default()
        };
        let keys: BTreeSet<Key> = [
            base,
            key_of(Request::builder("c").code("int main; ").file("a.h", "1"), none()),
            key_of(Request::builder("c").code("int main;").file("a.h", "2"), none()),
            key_of(Request::builder("c").code("int main;").file("b.h", "1"), none()),
            key_of(plain().file("b.c", ""), none()),
            key_of(plain(), tree("/one")),
            key_of(plain(), tree("/two")),
            key_of(plain(), variable),
            key_of(plain().compile_cache_owner("a"), none()),
            key_of(plain().compile_cache_owner("b"), none()),
        ]
        .into();
        assert_eq!(keys.len(), 10);
    }
}
