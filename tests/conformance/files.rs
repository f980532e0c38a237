//! Files that go in and files that come out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbox::{ExecuteError, FileEncoding, InvalidRequest, OutputFile, Report, Request};
use sandbox_tests::backend::with_each_backend;
use sha2::{Digest as _, Sha256};

use crate::table::{bash, c, mib, python};

table! {
    files_are_there_in_their_directories:
        bash("cat data/one.txt data/deep/two.txt; stat -c '%U %a' data data/one.txt")
            .file("data/one.txt", "1").file("data/deep/two.txt", "2")
        => Completed, |report: &Report| assert_eq!(report.stdout, "12sandbox 755\nsandbox 644\n");
    files_may_hold_any_bytes: bash("od -An -tx1 blob").file("blob", b"\x00\x01\xfe\xff".to_vec())
        => Completed, |report: &Report| assert_eq!(report.stdout.trim(), "00 01 fe ff");
    files_may_have_names_in_any_script: bash("cat 'ordner/grüße 世界.txt'").file("ordner/grüße 世界.txt", "hi")
        => Completed, |report: &Report| assert_eq!(report.stdout, "hi");
    files_belong_to_the_program: bash("echo more >> note; mkdir sub; mv note sub/; cat sub/note").file("note", "a\n")
        => Completed, |report: &Report| assert_eq!(report.stdout, "a\nmore\n");
    the_first_file_is_the_program:
        Request::builder("python").file("app/start.py", "import helper\nhelper.greet()")
            .file("app/helper.py", "def greet(): print('hello from a module')")
        => Completed, |report: &Report| assert_eq!(report.stdout, "hello from a module\n");
    several_sources_are_compiled_together:
        Request::builder("c").file("main.c", "#include \"twice.h\"\nint main(void) { return twice(4); }")
            .file("twice.h", "int twice(int);").file("twice.c", "int twice(int n) { return 2 * n; }")
        => RuntimeError, |report: &Report| assert_eq!(report.exit_code, 8);

    files_come_back_by_pattern:
        bash("mkdir -p out/deep; echo a > out/a.txt; echo b > out/deep/b.txt; echo c > out/c.log; echo d > d.txt")
            .collect("out/**/*.txt")
        => Completed, |report: &Report| {
            assert_eq!(files(report), [("out/a.txt", "a\n"), ("out/deep/b.txt", "b\n")]);
            assert_eq!(report.output_files[0].size, 2);
        };
    nothing_comes_back_unless_asked_for: bash("echo a > a.txt") => Completed, |report: &Report| {
        assert!(report.output_files.is_empty() && report.skipped_files.is_empty());
    };
    bytes_come_back_in_base64: bash("printf '\\x00\\xff' > blob; printf '' > empty; echo text > text").collect("*")
        => Completed, |report: &Report| {
            let of = |path: &str| {
                let file = report.output_files.iter().find(|file| file.path == path);
                file.map(|file| (file.encoding, file.content.as_str(), file.size))
            };
            assert_eq!(of("blob"), Some((FileEncoding::Base64, "AP8=", 2)));
            assert_eq!(of("empty"), Some((FileEncoding::Utf8, "", 0)));
            assert_eq!(of("text"), Some((FileEncoding::Utf8, "text\n", 5)));
        };
    a_directory_comes_back_with_all_that_is_in_it:
        bash("mkdir -p out/deep/er x/out; echo a > out/a; echo b > out/deep/er/b; echo c > outer; echo d > x/out/d; ln -s /etc out/link")
            .collect("out")
        => Completed, |report: &Report| {
            assert_eq!(files(report), [("out/a", "a\n"), ("out/deep/er/b", "b\n")]);
            let skipped: Vec<_> = report.skipped_files.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(skipped, ["out/link"]);
        };
    /// A link that has the name of a directory stands for nothing.
    a_link_to_a_directory_does_not_come_back_as_one: bash("ln -s /etc out").collect("out")
        => Completed, |report: &Report| {
            assert!(report.output_files.is_empty(), "{:?}", report.output_files);
            assert_eq!(report.skipped_files.len(), 1);
        };
    a_directory_counts_against_the_output_limit:
        bash("mkdir out; head -c 40K /dev/zero > out/a; head -c 40K /dev/zero > out/b").collect("out")
            .limits(limits!(with_output(sandbox::ByteSize::kib(64))))
        => OutputLimit, |report: &Report| assert!(report.output_files.len() < 2);
    files_come_back_with_their_hashes:
        python("import os, hashlib\nos.mkdir('d')\n\
                for name, data in [('d/blob', os.urandom(70000)), ('empty', b''), ('text', b'hello\\n')]:\n\
                \x20   open(name, 'wb').write(data)\n    print(name, hashlib.sha256(data).hexdigest())")
            .collect("**")
        => Completed, |report: &Report| {
            let told = report.output_files.iter().map(|file| format!("{} {}\n", file.path, file.sha256));
            assert_eq!(told.collect::<String>(), report.stdout);
            for file in &report.output_files {
                assert_eq!(file.sha256, hash(&bytes(file)), "{}", file.path);
            }
            assert_eq!(report.output_files[0].encoding, FileEncoding::Base64);
            assert_eq!(bytes(&report.output_files[0]).len(), 70_000);
        };
    /// What went in and is as it was is not a result.
    only_files_that_changed_come_back: bash("echo changed > b").file("a", "1").file("b", "2").collect("**")
        => Completed, |report: &Report| assert_eq!(files(report), [("b", "changed\n")]);
    files_come_back_from_a_program_that_fails: bash("echo partial > out; exit 1").collect("out")
        => RuntimeError, |report: &Report| assert_eq!(files(report), [("out", "partial\n")]);
    files_come_back_from_a_program_that_is_ended:
        bash("echo partial > out; sleep 60").collect("out")
            .limits(limits!(with_wall_time(crate::table::millis(2000))))
        => Timeout, |report: &Report| assert_eq!(files(report), [("out", "partial\n")]);
    what_is_no_plain_file_is_listed_and_left:
        python(ODD_FILES).collect("**") => Completed, |report: &Report| {
            assert_eq!(files(report), [("plain", "x")]);
            let why = |name: &str| {
                let skipped = report.skipped_files.iter().find(|file| file.path.contains(name));
                skipped.map(|file| file.reason.as_str()).unwrap_or_default()
            };
            assert!(why("link").contains("symbolic link"), "{:?}", report.skipped_files);
            assert!(why("pipe").contains("pipe"), "{:?}", report.skipped_files);
            assert!(why("socket").contains("socket"), "{:?}", report.skipped_files);
            assert!(why("new\\nline").contains("plain text"), "{:?}", report.skipped_files);
            assert!(why("raw").contains("plain text"), "{:?}", report.skipped_files);
            assert!(report.skipped_files.iter().any(|file| file.path.contains("directory")));
        };
    too_many_files_are_too_much_output:
        bash("for n in {1..1100}; do : > f$n; done").collect("f*") => OutputLimit, |report: &Report| {
            assert!(report.error.as_deref().unwrap_or_default().contains("1000 files"), "{:?}", report.error);
        };
    /// A name linked many times over costs no disk, and would cost memory outside.
    links_to_one_file_count_each_time:
        python("import os\nopen('f0', 'wb').write(bytes(1 << 20))\nfor n in range(1, 40): os.link('f0', f'f{n}')")
            .collect("f*").limits(limits!(with_disk(mib(8))))
        => OutputLimit, |report: &Report| assert!(report.output_files.len() <= 8);
    a_file_of_holes_counts_as_large_as_it_is_read:
        python("file = open('hole', 'wb')\nfile.truncate(7 << 20)\nopen('more', 'wb').truncate(7 << 20)")
            .collect("*").limits(limits!(with_disk(mib(8))))
        => OutputLimit, |report: &Report| assert!(report.output_files.len() < 2);
    what_a_compiler_leaves_is_no_result: c("int main(void) { return 0; }").collect("**")
        => Completed, |report: &Report| assert!(report.output_files.is_empty());
}

const ODD_FILES: &str = "
import os, socket
os.symlink('/etc/passwd', 'link')
os.symlink('/', 'link-to-directory')
os.mkfifo('pipe')
socket.socket(socket.AF_UNIX).bind('socket')
open('new\\nline', 'w').close()
open(b'raw\\xff', 'w').close()
open('plain', 'w').write('x')
";

/// The bytes of a file in a report.
fn bytes(file: &OutputFile) -> Vec<u8> {
    match file.encoding {
        FileEncoding::Utf8 => file.content.clone().into_bytes(),
        FileEncoding::Base64 => STANDARD.decode(&file.content).unwrap(),
    }
}

fn hash(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn files(report: &Report) -> Vec<(&str, &str)> {
    let files = report.output_files.iter();
    files.map(|file| (file.path.as_str(), file.content.as_str())).collect()
}

#[test]
fn more_files_than_the_disk_holds_are_a_bad_request() {
    with_each_backend(|sandbox| {
        let request = bash("true").file("big", vec![0; 2 << 20]).limits(limits!(with_disk(mib(1))));
        let error = sandbox.execute(request.build().unwrap()).unwrap_err();
        assert!(matches!(error, ExecuteError::Request(InvalidRequest::TooLarge(_))), "{error}");
    });
}

#[test]
fn files_of_one_execution_are_not_there_in_the_next() {
    with_each_backend(|sandbox| {
        for _ in 0..4 {
            let request = bash("ls -A /work /tmp /dev/shm; touch /work/x /tmp/x /dev/shm/x");
            let report = sandbox.execute(request.build().unwrap()).unwrap();
            assert_eq!(report.stdout, "/dev/shm:\n\n/tmp:\n\n/work:\nmain.sh\n");
        }
    });
}
