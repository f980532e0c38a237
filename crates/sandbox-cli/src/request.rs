//! Builds a validated request from arguments and files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use sandbox::{Allowlist, Limits, NetworkPolicy, Request, RequestBuilder, Snippet, Stdin, Volume};

use crate::args::RunArgs;
use crate::errors::Failure;
use crate::input::{Languages, Program, absolute, extra_files, first_line, open, read_text};

/// A validated request, and notes to print before it runs.
pub(crate) struct Prepared {
    pub(crate) request: Request,
    pub(crate) notes: Vec<String>,
}

/// Builds the request. `notes` are those of gathering; reading `--input` may add more.
pub(crate) fn prepare(
    args: &RunArgs,
    program: Program,
    template: Option<&str>,
    mut notes: Vec<String>,
    languages: Languages<'_>,
) -> Result<Prepared, Failure> {
    let language = language(args, &program, languages)?;
    let (program, snippet) = match template {
        Some(template) => render_template(args, template, program)?,
        None => (program, None),
    };
    let mut builder = Request::builder(&language).snippet(snippet);
    match program {
        Program::Text(code) => builder = builder.code(code),
        Program::Files(files) => {
            for file in files {
                builder = builder.file(file.path, file.contents);
            }
        }
        Program::TemplateOnly => {}
    }
    for file in extra_files(&args.input, &mut notes)? {
        builder = builder.file(file.path, file.contents);
    }
    builder = builder
        .args(args.args.iter().cloned())
        .limits(run_limits(args)?)
        .compile_limits(compile_limits(args)?)
        .network(args.network);
    if args.network == NetworkPolicy::Allowlist {
        let allow = Allowlist::new(args.allow.clone(), args.allow_dns);
        builder = builder.allow(allow.map_err(|error| Failure::usage(&error))?);
    } else if !args.allow.is_empty() || args.allow_dns {
        let reason = "--allow and --allow-dns require --network allowlist";
        return Err(Failure::Usage(reason.to_owned()));
    }
    builder = environment(args, builder)?;
    let request = builder.build().map_err(|error| Failure::usage(&error))?;
    Ok(Prepared { request, notes })
}

fn environment(args: &RunArgs, mut builder: RequestBuilder) -> Result<RequestBuilder, Failure> {
    for pair in &args.env {
        builder = builder.env(&pair.key, &pair.value);
    }
    for volume in &args.volume {
        builder = builder.volume(parse_volume(volume)?);
    }
    for glob in collect_globs(args) {
        builder = builder.collect(glob);
    }
    for protection in &args.allow_missing {
        builder = builder.allow_missing(*protection);
    }
    builder = builder.packages(args.packages.iter().flat_map(|list| list.0.iter().cloned()));
    builder = builder.host_packages(!args.no_host_packages);
    if let Some(name) = &args.environment {
        builder = builder.environment(name.as_str());
    }
    if let Some(image) = &args.image {
        builder = builder.image(image.to_string());
    }
    if let Some(workspace) = &args.workspace {
        builder = builder.workspace(workspace.to_string());
    }
    if let Some(directory) = &args.workdir {
        builder = builder.workdir(directory);
    }
    if let Some(interval) = args.usage_interval {
        builder = builder.usage_interval(interval);
    }
    if let Some(path) = &args.stdin {
        builder = builder.stdin(program_stdin(path)?);
    }
    Ok(builder)
}

/// The language: from --lang, else from the entry point, else from the template's name.
fn language(
    args: &RunArgs,
    program: &Program,
    languages: Languages<'_>,
) -> Result<String, Failure> {
    if let Some(language) = &args.lang {
        return Ok(language.clone());
    }
    let language_of = languages.of_file;
    let (name, found) = match program {
        Program::Files(files) if !files.is_empty() => {
            let (path, line) = (&files[0].path, first_line(&files[0].contents));
            (Some(path.clone()), language_of(path, &line))
        }
        Program::Text(code) => (None, language_of("", &first_line(code.as_bytes()))),
        _ => (None, None),
    };
    let from_template = || {
        let name = args.template.as_ref()?.file_name()?.to_str()?;
        // A template is often named after its result: `report.py.j2`.
        let stem = [".j2", ".jinja", ".jinja2", ".tmpl", ".template"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending));
        language_of(stem.unwrap_or(name), "")
    };
    found.or_else(from_template).ok_or_else(|| {
        Failure::Usage(match name {
            Some(name) => format!(
                "cannot detect the language of '{name}': name it with --lang, such as --lang python"
            ),
            None => {
                "cannot detect the language of the code: name it with --lang, such as --lang python"
                    .to_owned()
            }
        })
    })
}

fn run_limits(args: &RunArgs) -> Result<Limits, Failure> {
    let mut limits = Limits::run();
    if let Some(time) = args.timeout {
        limits = checked("--timeout", limits.with_wall_time(time))?;
    }
    if let Some(time) = args.cpu_time {
        limits = checked("--cpu-time", limits.with_cpu_time(time))?;
    }
    if let Some(size) = args.memory {
        limits = checked("--memory", limits.with_memory(size))?;
    }
    if let Some(cpus) = args.cpus {
        limits = checked("--cpus", limits.with_cpus(cpus))?;
    }
    if let Some(pids) = args.pids {
        limits = checked("--pids", limits.with_pids(pids))?;
    }
    if let Some(size) = args.disk {
        limits = checked("--disk", limits.with_disk(size))?;
    }
    if let Some(size) = args.output_limit {
        limits = checked("--output-limit", limits.with_output(size))?;
    }
    if let Some(count) = args.open_files {
        limits = checked("--open-files", limits.with_open_files(count))?;
    }
    Ok(limits)
}

fn compile_limits(args: &RunArgs) -> Result<Limits, Failure> {
    let mut limits = Limits::compile();
    if let Some(time) = args.compile_timeout {
        limits = checked("--compile-timeout", limits.with_wall_time(time))?;
    }
    if let Some(size) = args.compile_memory {
        limits = checked("--compile-memory", limits.with_memory(size))?;
    }
    Ok(limits)
}

fn checked<E: std::error::Error>(flag: &str, limits: Result<Limits, E>) -> Result<Limits, Failure> {
    limits.map_err(|error| Failure::Usage(format!("{flag}: {error}")))
}

/// The patterns to collect; `**` if only --output-dir was given.
fn collect_globs(args: &RunArgs) -> Vec<String> {
    if args.collect.is_empty() && args.output_dir.is_some() {
        vec!["**".to_owned()]
    } else {
        args.collect.clone()
    }
}

/// Parses a volume whose host path may be relative; the library requires an absolute path.
fn parse_volume(text: &str) -> Result<Volume, Failure> {
    let from_root = match text.split_once(':') {
        Some((host, rest)) if !host.is_empty() => {
            format!("{}:{rest}", absolute(Path::new(host))?.display())
        }
        _ => text.to_owned(),
    };
    from_root.parse().map_err(|error| Failure::usage(&error))
}

fn program_stdin(path: &Path) -> Result<Stdin, Failure> {
    if path == Path::new("-") {
        return Ok(Stdin::from_reader(io::stdin()));
    }
    open(path).map(|input| Stdin::from_reader(input.file))
}

/// Fills the code and the values into the template. The result replaces the code; the snippet maps its lines back.
fn render_template(
    args: &RunArgs,
    template: &str,
    program: Program,
) -> Result<(Program, Option<Snippet>), Failure> {
    let mut values = BTreeMap::new();
    for pair in &args.set {
        values.insert(pair.key.clone(), pair.value.clone());
    }
    for pair in &args.set_file {
        values.insert(pair.key.clone(), read_text(Path::new(&pair.value))?);
    }
    let render = |code: Option<&str>| {
        sandbox::template::render(template, code, &values).map_err(|error| Failure::usage(&error))
    };
    let text = |code: Option<&str>| {
        render(code).map(|rendered| (Program::Text(rendered.text), rendered.snippet))
    };
    match program {
        Program::TemplateOnly => text(None),
        Program::Text(code) => text(Some(&code)),
        Program::Files(mut files) => {
            let Some(entry) = files.first_mut() else {
                return text(None);
            };
            let code = std::str::from_utf8(&entry.contents).map_err(|_| {
                Failure::Usage(format!(
                    "cannot use '{}' as {{{{ code }}}}: it is not UTF-8",
                    entry.path
                ))
            })?;
            let rendered = render(Some(code))?;
            entry.contents = rendered.text.into_bytes();
            Ok((Program::Files(files), rendered.snippet))
        }
    }
}

/// Whether a template uses `code`. If it does not, standard input is not read for code.
pub(crate) fn template_wants_code(template: &str) -> bool {
    template
        .split("{{")
        .skip(1)
        .filter_map(|part| part.split("}}").next())
        .chain(template.split("{%").skip(1).filter_map(|part| part.split("%}").next()))
        .any(|expression| {
            expression
                .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .any(|word| word == "code")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::{ByteSize, Protection};

    fn by_extension(name: &str, line: &str) -> Option<String> {
        let extension = Path::new(name).extension().and_then(|text| text.to_str());
        let found = extension == Some("py") || line == "#!/usr/bin/python3";
        found.then(|| "python".to_owned())
    }

    fn prepared(line: &[&str], program: Program) -> Result<Request, String> {
        let args = RunArgs::from_line(line);
        let template = args.template.as_ref().map(|path| path.to_str().unwrap());
        let languages = Languages {
            of_file: &by_extension,
            named: &|name| Ok(name.to_owned()),
            of_project: &|_| None,
            entry: &|_, _| None,
        };
        prepare(&args, program, template, Vec::new(), languages)
            .map(|prepared| prepared.request)
            .map_err(|failure| failure.message().unwrap())
    }

    fn text(code: &str) -> Program {
        Program::Text(code.to_owned())
    }

    #[test]
    fn flags_become_limits_and_only_those_given_are_required() {
        let line = ["-l", "py", "-m", "64M", "--cpus", "0.5", "--compile-memory", "2G"];
        let request = prepared(&line, text("1")).unwrap();
        let limits = request.run_limits();
        assert_eq!(limits.memory(), ByteSize::mib(64));
        assert_eq!(limits.cpu_millis(), 500);
        assert!(limits.is_requested(Protection::Memory) && !limits.is_requested(Protection::Pids));
        assert_eq!(request.compile_limits().memory(), ByteSize::mib(2048));
    }

    #[test]
    fn a_limit_out_of_range_is_refused_with_its_flag() {
        let message = prepared(&["-l", "py", "--pids", "0"], text("1")).unwrap_err();
        assert!(
            message.starts_with("sandbox-run: --pids:") && message.contains("1 to"),
            "{message}"
        );
    }

    #[test]
    fn the_language_is_given_or_detected_or_required() {
        let file = |path: &str| {
            Program::Files(vec![crate::input::SourceFile {
                path: path.into(),
                contents: b"x".to_vec(),
            }])
        };
        let name =
            |result: Result<Request, String>| result.map(|request| request.language().to_string());
        assert_eq!(name(prepared(&["-l", "c@12"], file("a.py"))).unwrap(), "c@12");
        assert_eq!(name(prepared(&[], file("a.py"))).unwrap(), "python");
        assert_eq!(name(prepared(&[], text("#!/usr/bin/python3\n1"))).unwrap(), "python");
        let line = ["--template", "x.py.j2"];
        assert_eq!(name(prepared(&line, text("1"))).unwrap(), "python");
        for program in [file("a.xyz"), text("1")] {
            let message = prepared(&[], program).unwrap_err();
            assert!(message.contains("--lang"), "{message}");
        }
    }

    #[test]
    fn output_dir_collects_all_files_by_default() {
        let globs = |line: &[&str]| {
            let request = prepared(line, text("1")).unwrap();
            let globs = request.collect().iter().map(ToString::to_string);
            globs.collect::<Vec<_>>()
        };
        assert_eq!(globs(&["-l", "py"]), [""; 0]);
        assert_eq!(globs(&["-l", "py", "-o", "d"]), ["**"]);
        assert_eq!(globs(&["-l", "py", "-o", "d", "--collect", "*.txt"]), ["*.txt"]);
    }

    #[test]
    fn a_volume_may_be_a_relative_path() {
        let volume = parse_volume("data:/data:rw").unwrap();
        assert!(volume.host().is_absolute() && volume.host().ends_with("data"));
        assert!(parse_volume("/proc:/p").is_err());
        assert!(parse_volume("/srv").is_err());
    }

    #[test]
    fn only_templates_that_mention_code_need_it() {
        assert!(template_wants_code("def f():\n{{ code | indent }}"));
        assert!(template_wants_code("{% if code %}x{% endif %} {{ encoder }}"));
        assert!(!template_wants_code("code = {{ name }} # code"));
    }
}
