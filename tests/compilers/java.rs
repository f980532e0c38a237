//! Attacks on the Java compiler: annotation processors, which it runs inside itself, and sources that no
//! class file can hold.

use std::fmt::Write;
use std::path::Path;

use sandbox::{Report, Request, RequestBuilder, Sandbox, Status, Volume, VolumeAccess};
use sandbox_tests::backend::execute;

use crate::attack::{Attack, Patience, attempt, nothing_more};
use crate::host::Host;

attacks! {
    a_question_about_types_that_has_no_end_is_ended:
        "java/EndlessSubtype.java", Short => [Timeout, CompileError, MemoryLimit], nothing_more;
    a_processor_among_the_sources_is_not_run:
        "java/processor", Long => [Completed], |report| {
            assert_eq!(report.stdout, "compiled\n");
            assert!(!report.stages[0].output.contains("the processor ran"));
        };
}

/// Carries out an attack with a source that is made here, because it is long.
fn attempt_with(name: &'static str, statuses: &'static [Status], check: fn(&Report), code: &str) {
    let patience = Patience::Long;
    let attack = Attack { name, source: "java/generated", patience, statuses, check };
    attempt(&attack, |_, request| request.code(code));
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{}", line(number));
        text
    })
}

#[test]
fn a_method_that_is_too_long_for_a_class_file_is_refused() {
    let body = lines(10_000, |number| format!("System.out.println({number});"));
    let code = format!("public class Main {{ public static void main(String[] a) {{ {body} }} }}");
    attempt_with("code_too_large", &[Status::CompileError], says!("code too large"), &code);
}

#[test]
fn more_constants_than_a_class_file_can_hold_are_refused() {
    let fields = lines(35_000, |number| format!("static final String c{number} = \"{number}\";"));
    let code = format!("public class Main {{ {fields} public static void main(String[] a) {{}} }}");
    attempt_with("constant_pool", &[Status::CompileError], says!("too many constants"), &code);
}

#[test]
fn an_expression_that_is_deeper_than_the_compilers_stack_is_a_compile_error() {
    let depth = 200_000;
    let code = format!(
        "public class Main {{ public static void main(String[] a) {{ int x = {}1{}; }} }}",
        "(".repeat(depth),
        ")".repeat(depth),
    );
    attempt_with("deep_expression", &[Status::CompileError], nothing_more, &code);
}

/// A class that compiles a processor and packs it into a library, as somebody would who prepares an
/// attack.
const PACK: &str = r#"
import java.io.FileOutputStream;
import java.nio.file.*;
import java.util.jar.*;
import javax.tools.ToolProvider;

public class Pack {
    public static void main(String[] arguments) throws Exception {
        Files.copy(Path.of("processor.txt"), Path.of("Processor.java"));
        var compiler = ToolProvider.getSystemJavaCompiler();
        compiler.run(null, null, null, "-proc:none", "-d", "/tmp", "Processor.java");
        try (var jar = new JarOutputStream(new FileOutputStream("/packed/processor.jar"))) {
            jar.putNextEntry(new JarEntry("META-INF/services/javax.annotation.processing.Processor"));
            jar.write("Processor".getBytes());
            jar.putNextEntry(new JarEntry("Processor.class"));
            jar.write(Files.readAllBytes(Path.of("/tmp/Processor.class")));
        }
    }
}
"#;

/// Adds a program, and a library with a processor in it that is after the secret of this host.
pub(crate) fn add_library_with_processor(host: &Host, request: RequestBuilder) -> RequestBuilder {
    let code = "@Deprecated public class Main { public static void main(String[] a) {} }";
    let request = request.code(code);
    let place = tempfile::tempdir().unwrap();
    let packed = Volume::new(place.path(), Path::new("/packed"), VolumeAccess::ReadWrite).unwrap();
    let processor = host.source("java/processor/Processor.java");
    let pack = Request::builder("java").code(PACK).file("processor.txt", processor).volume(packed);
    let sandbox = Sandbox::builder().without_compile_cache().build().unwrap();
    match execute("library_with_processor", &sandbox, pack) {
        Some(_) => {
            let library = std::fs::read(place.path().join("processor.jar")).unwrap();
            request.file("lib/processor.jar", library)
        }
        None => request,
    }
}

#[test]
fn a_processor_in_a_library_runs_inside_the_walls() {
    let attack = Attack {
        name: "processor_in_library",
        source: "java/generated",
        patience: Patience::Long,
        statuses: &[Status::Completed],
        check: |report| {
            let said = &report.stages[0].output;
            assert!(said.contains("the processor ran"), "the attack did not take place: {said}");
            assert!(said.contains("NoSuchFileException"), "{said}");
        },
    };
    attempt(&attack, add_library_with_processor);
}
