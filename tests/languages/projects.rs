//! Programs of several files and directories, as each language's own tools lay them out. Where they start
//! is found by convention.

use sandbox::{Request, Status};
use sandbox_tests::backend::with_native_and_another;

use crate::program::{execute, files_below, folder, project};

macro_rules! projects {
    ($($language:ident { $($name:ident => $stdout:literal;)+ })+) => {$(
        mod $language {
            $(#[test]
            fn $name() {
                super::check(stringify!($language), stringify!($name), $stdout);
            })+
        }
    )+};
}

projects! {
    python {
        directories => "total 7\n";
        package => "total 7 shop\n";
    }
    javascript {
        directories => "total 7\n";
        modules => "total 7 apple,pear\n";
        package_type => "total 7 undefined\n";
        dependencies => "total 7 kr\n";
    }
    typescript {
        directories => "total 7\n";
    }
    go {
        directories => "total 7 shop\n";
        vendored => "7 kr hello\n";
    }
    rust {
        directories => "total 7\n";
        path_dependency => "7 kr\n";
        vendored => "7 kr\n";
    }
    java {
        directories => "total 7\n";
        package => "total 7 shop.app.Main\n";
        several_classes => "total 7\n";
        another_name => "total 7 Shop\n";
    }
    c {
        directories => "total 7\n";
    }
    cpp {
        directories => "total 7\n";
    }
}

fn check(language: &str, name: &str, stdout: &str) {
    let files =
        files_below(&folder("languages/programs").join(language).join("projects").join(name));
    with_native_and_another(&format!("{language}/{name}"), 3, |sandbox| {
        let report = execute(sandbox, project(sandbox, language, files.clone()));
        assert_eq!(report.status, Status::Completed, "{:?}\n{}", report.error, report.stderr);
        assert_eq!((report.stdout.as_str(), report.stderr.as_str()), (stdout, ""));
    });
}

/// Code text has no file name of its own, and a public class wants a certain one.
#[test]
fn a_java_class_given_as_text_may_have_any_name() {
    let path = folder("languages/programs/java/projects/another_name/Shop.java");
    let code = std::fs::read_to_string(path).unwrap();
    with_native_and_another("java", 3, |sandbox| {
        let report = execute(sandbox, Request::builder("java").code(&*code));
        assert_eq!(report.stdout, "total 7 Shop\n", "{}", report.stderr);
    });
}
