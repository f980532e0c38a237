//! Attacks from containers that another runtime built. That they succeed without a protection is shown by the native backend;
//! here the protections are on, and set up by another runtime.

use sandbox::Sandbox;
use sandbox::attack::{self, AttackHarness, Outcome};
use sandbox_tests::backend::{Feature, named};
use sandbox_tests::skip::skip;

macro_rules! classes {
    ($($name:ident: $class:literal;)+) => {
        classes! { docker: $($name: $class;)+ }
        classes! { runc: $($name: $class;)+ }
        classes! { gvisor: $($name: $class;)+ }
    };
    ($backend:ident: $($name:ident: $class:literal;)+) => {
        mod $backend {
            $(#[test]
            fn $name() {
                super::each_is_contained(stringify!($backend), $class);
            })+
        }
    };
}

classes! {
    escape: "escape";
    host_leak: "host-leak";
    privilege: "privilege";
    resources: "resources";
    cross_run: "cross-run";
    output_files: "output-files";
    descriptors: "descriptors";
    supervisor: "supervisor";
    compile_time: "compile-time";
}

#[test]
fn every_attack_class_is_tested() {
    let here = include_str!("containers.rs");
    for attack in attack::all().expect("the attacks can be read") {
        assert!(here.contains(&format!("\"{}\";", attack.class())), "{}", attack.class());
    }
}

fn each_is_contained(backend: &str, class: &str) {
    let backend = named(backend);
    if !backend.is_here() {
        return;
    }
    let harness = AttackHarness::with((backend.choose)(Sandbox::builder()))
        .expect("an harness can be set up");
    let is_told = !backend.lacks(Feature::NamedDenials);
    let mut failed = Vec::new();
    for attack in attack::all().expect("the attacks can be read") {
        if attack.class() != class {
            continue;
        }
        // Some kinds of containers lack some protections; the attacks on those are contained all the same.
        let result = harness.try_best_effort(&attack);
        match result.outcome {
            Outcome::Contained => {}
            Outcome::Skipped => {
                skip(&format!("{} attack {class}/{}", backend.name, attack.name()), &result.detail);
            }
            _ if backend.explained.iter().any(|(name, _)| *name == attack.name()) => {}
            // It failed in the expected way, and the denial could not be counted.
            Outcome::Unclear if !is_told && result.detail.contains("does not tell of") => {}
            outcome => failed.push(format!("{}: {outcome}: {}", attack.name(), result.detail)),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
