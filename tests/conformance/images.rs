//! An image as the root of a sandbox: its files and programs instead of the host's, with the same protections.

use sandbox::{
    ByteSize, ExecuteError, RequestBuilder, ResolveError, Sandbox, SandboxBuilder, Status,
};
use sandbox_tests::backend::{execute, with_each_backend_set_up, with_native_set_up};
use sandbox_tests::image::{Layer, TestImage};

use crate::table::{assert_consistent, bash, mib, millis, python};

fn with_image(image: &TestImage, test: impl Fn(&Sandbox)) {
    let set_up = |builder: SandboxBuilder| builder.images(image.store.clone());
    with_each_backend_set_up(&[], set_up, test);
}

fn in_image(image: &TestImage, code: &str) -> RequestBuilder {
    bash(code).image(image.name)
}

fn refusal(sandbox: &Sandbox, request: RequestBuilder) -> ExecuteError {
    sandbox.execute(request.build().unwrap()).expect_err("it is refused")
}

#[test]
fn a_program_sees_the_image_and_nothing_of_the_host() {
    let image = Layer::with_shell()
        .file("etc/marker", 0o644, b"of the image\n")
        .file("srv/data/file", 0o644, b"data\n")
        .into_image();
    with_image(&image, |sandbox| {
        let code = "cat /etc/marker /srv/data/file; echo \"$IN_IMAGE $PATH\"; ls /usr/bin | while read n; \
                    do echo -n \"$n \"; done; echo; cat main.sh >left";
        let request = in_image(&image, code).collect("left");
        let report = execute("image", sandbox, request).expect("bash is in the image");
        assert_eq!(report.status, Status::Completed, "{:?} {}", report.error, report.stderr);
        assert_consistent(&report);
        assert_eq!(
            report.stdout, "of the image\ndata\nyes /usr/bin:/bin\nbash cat id ls \n",
            "{}",
            report.stderr
        );
        assert_eq!(report.output_files[0].size, code.len() as u64);
        let said = report.image.as_deref().unwrap();
        assert!(said.starts_with("test/shell:1@sha256:"), "{said}");
        // The same protections as with the host's own programs.
        let plain = execute("host", sandbox, bash("true")).expect("bash is there");
        assert_eq!(report.enforced, plain.enforced);
        assert_eq!((plain.image, plain.isolation), (None, report.isolation));
    });
}

#[test]
fn an_image_cannot_be_written_to() {
    let image = Layer::with_shell().file("etc/marker", 0o666, b"old\n").into_image();
    let reference = image.name.parse().unwrap();
    let root = image.store.resolve(&reference).unwrap().root;
    with_image(&image, |sandbox| {
        let code = "for f in /new /usr/new /usr/bin/bash /etc/marker /etc/new /opt/new; do \
                    { echo x >>$f; } 2>/dev/null && echo \"wrote $f\"; done; echo x >/tmp/y && cat /tmp/y";
        let report =
            execute("image", sandbox, in_image(&image, code)).expect("bash is in the image");
        assert_eq!((report.status, report.stdout.as_str()), (Status::Completed, "x\n"));
        assert_eq!(std::fs::read(root.join("etc/marker")).unwrap(), b"old\n");
        assert!(!root.join("usr/new").exists());
    });
}

#[test]
fn limits_hold_in_an_image() {
    let image = Layer::with_shell().into_image();
    with_image(&image, |sandbox| {
        let ends = |request: RequestBuilder| {
            execute("image", sandbox, request).expect("bash is in the image").status
        };
        let endless = in_image(&image, "while :; do :; done");
        assert_eq!(ends(endless.limits(limits!(with_wall_time(millis(300))))), Status::Timeout);
        let greedy = in_image(&image, "x=x; while :; do x=$x$x; done");
        assert_eq!(ends(greedy.limits(limits!(with_memory(mib(32))))), Status::MemoryLimit);
        let loud = in_image(&image, "while :; do echo loud; done");
        assert_eq!(ends(loud.limits(limits!(with_output(ByteSize::kib(64))))), Status::OutputLimit);
    });
}

/// Links where a sandbox has directories of its own, and links to wherever a host keeps secrets: they lead to what is at
/// that path inside, or nowhere. A program with the set-user-ID bit is as powerless as any other.
#[test]
fn an_image_full_of_traps_is_a_root_like_any_other() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "secret").unwrap();
    let shell = std::fs::read("/usr/bin/id").unwrap();
    let mut layer = Layer::with_shell().file("usr/bin/powerful", 0o4755, &shell);
    for name in ["work", "tmp", "dev", "proc", "mnt", "etc", "opt", "run", "sys"] {
        layer = layer.link(name, "/usr");
    }
    let outside = format!("/proc/1/root{}", secret.path().display());
    let up = format!("../../../../../../..{}", secret.path().display());
    let image =
        layer.link("one", &outside).link("two", &up).link("usr/three", &outside).into_image();
    with_image(&image, |sandbox| {
        let code = "cat /one /two /usr/three 2>/dev/null; for d in work tmp dev proc etc opt; do \
                    test -d /$d -a ! -L /$d || echo \"$d is a link\"; done; powerful -u; id -u";
        let report =
            execute("image", sandbox, in_image(&image, code)).expect("bash is in the image");
        assert_eq!(report.status, Status::Completed, "{:?} {}", report.error, report.stderr);
        let users: Vec<&str> = report.stdout.lines().collect();
        assert_eq!(users.len(), 2, "{}", report.stdout);
        assert_eq!(users[0], users[1], "the bit has an effect");
        assert_ne!(users[0], "0");
    });
    assert_eq!(std::fs::read(secret.path()).unwrap(), b"secret");
}

#[test]
fn a_missing_feature_is_reported() {
    let image = Layer::with_shell().into_image();
    let set_up = |builder: SandboxBuilder| builder.images(image.store.clone());
    with_native_set_up(set_up, |sandbox| {
        let error = refusal(sandbox, python("1").image(image.name));
        assert!(
            matches!(error, ExecuteError::Language(ResolveError::NotInImage { .. })),
            "{error}"
        );
        assert!(error.to_string().contains("there is no python3"), "{error}");
        let error = refusal(sandbox, bash("").image("test/none:1")).to_string();
        assert_eq!(error, "image 'test/none:1' not found: pull or import it first");
        let error = refusal(sandbox, bash("").image("NO SUCH NAME")).to_string();
        assert!(error.contains("NO SUCH NAME"), "{error}");
        let error = refusal(sandbox, bash("").image(image.name).packages(["six"])).to_string();
        assert!(error.contains("packages are not supported in an image"), "{error}");
        let newer = sandbox::Request::builder("bash@99").code("").image(image.name);
        let error = refusal(sandbox, newer).to_string();
        assert!(error.starts_with("bash is not in the image test/shell:1@sha256:"), "{error}");
    });
}

#[test]
fn a_recipe_can_name_an_image() {
    let image = Layer::with_shell().file("etc/marker", 0o644, b"of the image\n").into_image();
    let recipes = tempfile::tempdir().unwrap();
    let place = recipes.path().join("bash");
    std::fs::create_dir(&place).unwrap();
    let recipe = format!(
        "name = 'bash'\nextensions = ['sh']\nentry = 'main.sh'\n[toolchain]\nimage = '{}'\n\
         programs = ['bash']\nversion = {{ args = ['--version'] }}\n\
         [run]\ncommand = ['{{program}}', '{{entry}}']\n[hello]\ncode = ''\nexpected = ''\n",
        image.name
    );
    std::fs::write(place.join("runtime.toml"), recipe).unwrap();
    let set_up = |builder: SandboxBuilder| {
        builder.images(image.store.clone()).runtimes_directory(recipes.path().to_owned())
    };
    with_native_set_up(set_up, |sandbox| {
        let report = execute("image", sandbox, bash("cat /etc/marker")).unwrap();
        assert_eq!(report.stdout, "of the image\n");
        assert!(report.image.is_some());
        let request = bash("").build().unwrap();
        assert_eq!(sandbox.requirements(&request).unwrap().version, report.version);
    });
}

/// A name that means another image by now is that one, and images that are used stay.
#[test]
fn a_name_is_looked_up_for_each_execution() {
    let [old, new] = ["old\n", "new\n"]
        .map(|text| Layer::with_shell().file("etc/marker", 0o644, text.as_bytes()).into_image());
    let set_up = |builder: SandboxBuilder| builder.images(old.store.clone());
    with_native_set_up(set_up, |sandbox| {
        let marker = || {
            let request = in_image(&old, "cat /etc/marker");
            execute("image", sandbox, request).expect("bash is in the image").stdout
        };
        assert_eq!(marker(), "old\n");
        old.store.import(&new.archive, None, &mut |_| {}).unwrap();
        // It is isolated, so it stays.
        let pruned = old.store.prune().unwrap();
        assert_eq!((pruned.roots, pruned.in_use), (0, 1));
        assert_eq!(marker(), "new\n");
    });
}
